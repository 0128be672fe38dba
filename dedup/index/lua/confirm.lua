-- confirm(KEYS = {..., page id, page id, ...}, ARGV = {...}) -> how many claims became done
-- What comes first: see known.lua; the keys are described in claim.lua.  A page that is not filed is passed over.
local done = 0
for i = 5, #KEYS do
  local number = redis.call('GET', KEYS[i])
  if number then done = done + redis.call('HDEL', pending, number) end
end
return answer(done)
