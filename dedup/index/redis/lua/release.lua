-- release(KEYS = {..., released, page id, bucket of table 0, 1, ...}, ARGV = {..., prefix of pages}) -> 1 or 0
-- What comes first: see known.lua.
-- Takes back a pending claim of this run; others are left as they are.  A run that is closed releases its claims:
-- rows finish pending, finish reclaimed, stop pending, stop reclaimed.
local released, page_id = KEYS[5], KEYS[6]
local number = redis.call('GET', page_id)
if not number or redis.call('HGET', pending, number) ~= run then return answer(0) end
redis.call('GET', released) -- only for its type
local filer = filed_by(ARGV[5] .. number)
redis.call('HDEL', pending, number) -- the first write: one that is allowed when memory is full
take_number_for_change(released)
if filer ~= run then return answer(1) end -- row release reclaimed
for i = 7, #KEYS do redis.call('ZREM', KEYS[i], number) end -- row release pending
redis.call('DEL', page_id, ARGV[5] .. number)
redis.call('INCR', released)
return answer(1)
