-- release(KEYS = {..., released, bucket of the page id, bucket of table 0, 1, ...},
--         ARGV = {..., prefix of pages, key of the page id})
--   -> 1 or 0
-- What comes first: see known.lua.
-- Takes back a pending claim of this run; others are left as they are.  A run that is closed releases its claims:
-- rows finish pending, finish reclaimed, stop pending, stop reclaimed.
local released = KEYS[5]
local number = number_of(KEYS[6], ARGV[6])
if not number or redis.call('HGET', pending, number) ~= run then return answer(0) end
redis.call('GET', released) -- only for its type
for i = 7, #KEYS do redis.call('STRLEN', KEYS[i]) end -- as here
local filer = filed_by(ARGV[5] .. number)
redis.call('HDEL', pending, number) -- the first write: one that is allowed when memory is full
take_number_for_change(released)
if filer ~= run then return answer(1) end -- row release reclaimed
for i = 6, #KEYS do take_out(KEYS[i], number) end -- row release pending
redis.call('DEL', ARGV[5] .. number)
redis.call('INCR', released)
return answer(1)
