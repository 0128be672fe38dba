-- forget(KEYS = {..., released, then per page: bucket of its page id, bucket of table 0, 1, ...},
--        ARGV = {..., prefix of pages, number of tables, state or '', keys of the page ids, number of each page})
--   -> how many pages were taken out
-- What comes first: see known.lua.
-- Takes out pages; one that has another number by now is left, and so is one of another state, if a state is given.
-- Rows forget pending, forget done, forget safe, forget dead, forget earlier, forget reclaimed; row replace earlier.
local released, per_page, wanted, gone = KEYS[5], tonumber(ARGV[6]) + 1, ARGV[7], 0
redis.call('GET', released) -- only for their types
for key = 6, #KEYS do redis.call('STRLEN', KEYS[key]) end
for page = 0, #ARGV - 9 do
  local first, number = 6 + page * per_page, tonumber(ARGV[9 + page])
  local is_filed = number_of(KEYS[first], key_at(ARGV[8], page)) == number
  if is_filed and (wanted == '' or state_of(number, ARGV[5] .. number) == wanted) then
    redis.call('HDEL', pending, number) -- the first write: one that is allowed when memory is full
    for table = 0, per_page - 1 do take_out(KEYS[first + table], number) end
    redis.call('DEL', ARGV[5] .. number)
    redis.call('INCR', released)
    gone = gone + 1
  end
end
if gone > 0 then take_number_for_change(released) end
return answer(gone)
