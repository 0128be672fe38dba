-- release(KEYS = {..., released, bucket of the page id, bucket of table 0, 1, ...},
--         ARGV = {..., prefix of pages, number of the page, 'own' or 'any'})
--   -> 1 or 0
-- What comes first: see known.lua.
-- Takes back a pending claim of this run, or of any; others are left as they are.  A run that is closed releases its
-- claims: rows finish pending, finish reclaimed, stop pending, stop reclaimed.
local released, number = KEYS[5], tonumber(ARGV[6])
local owner = redis.call('HGET', pending, number)
if not owner or (owner ~= run and ARGV[7] ~= 'any') then return answer(0) end
redis.call('GET', released) -- only for its type
for i = 6, #KEYS do redis.call('STRLEN', KEYS[i]) end -- as here
local filer = filed_by(ARGV[5] .. number)
redis.call('HDEL', pending, number) -- the first write: one that is allowed when memory is full
take_number_for_change(released)
if filer ~= owner then return answer(is_alive(owner) and 1 or 0) end -- rows release reclaimed, annul reclaimed; die reclaimed
for i = 6, #KEYS do take_out(KEYS[i], number) end -- rows release pending, annul pending, annul dead
redis.call('DEL', ARGV[5] .. number)
redis.call('INCR', released)
return answer(1)
