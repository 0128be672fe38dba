-- confirm(KEYS = {pending, page id, page id, ...}, ARGV = {}) -> how many claims became done
-- The keys are described in claim.lua.  A page that is not filed is passed over.
local done = 0
for i = 2, #KEYS do
  local number = redis.call('GET', KEYS[i])
  if number then done = done + redis.call('HDEL', KEYS[1], number) end
end
return done
