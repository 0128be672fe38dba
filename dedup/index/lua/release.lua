-- release(KEYS = {pending, released, page id, bucket of table 0, 1, ...}, ARGV = {run, prefix of pages})
--   -> 1 or 0
-- Takes back a pending claim of this run; others are left as they are.  The keys: see claim.lua.
local number = redis.call('GET', KEYS[3])
if not number or redis.call('HGET', KEYS[1], number) ~= ARGV[1] then return 0 end
for i = 4, #KEYS do redis.call('ZREM', KEYS[i], number) end
redis.call('DEL', KEYS[3], ARGV[2] .. number)
redis.call('HDEL', KEYS[1], number)
redis.call('INCR', KEYS[2])
return 1
