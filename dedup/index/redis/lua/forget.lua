-- forget(KEYS = {..., released, then per page: page id, bucket of table 0, 1, ...},
--        ARGV = {..., prefix of pages, number of tables, state or '', number of each page})
--   -> how many pages were taken out
-- What comes first: see known.lua.
-- Takes out pages; one that has another number by now is left, and so is one of another state, if a state is given.
-- Rows forget pending, forget done, forget safe, forget dead, forget earlier, forget reclaimed; row replace earlier.
local released, per_page, wanted, gone = KEYS[5], tonumber(ARGV[6]) + 1, ARGV[7], 0
redis.call('GET', released) -- only for their types
for key = 6, #KEYS do
  if (key - 6) % per_page == 0 then redis.call('GET', KEYS[key]) else redis.call('ZCARD', KEYS[key]) end
end
for page = 0, #ARGV - 8 do
  local key, number = 6 + page * per_page, ARGV[8 + page]
  if redis.call('GET', KEYS[key]) == number and (wanted == '' or state_of(number, ARGV[5] .. number) == wanted) then
    redis.call('HDEL', pending, number) -- the first write: one that is allowed when memory is full
    for table = 1, per_page - 1 do redis.call('ZREM', KEYS[key + table], number) end
    redis.call('DEL', KEYS[key], ARGV[5] .. number)
    redis.call('INCR', released)
    gone = gone + 1
  end
end
if gone > 0 then take_number_for_change(released) end
return answer(gone)
