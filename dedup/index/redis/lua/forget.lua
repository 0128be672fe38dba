-- forget(KEYS = {..., released, then per page: page id, bucket of table 0, 1, ...},
--        ARGV = {..., prefix of pages, number of tables, number of each page})
--   -> how many pages were taken out
-- What comes first: see known.lua.
-- Takes out pages; one that has another number by now is left.
-- Rows forget pending, forget done, forget safe, forget dead, forget lost, forget reclaimed.
local released, per_page, gone = KEYS[5], tonumber(ARGV[6]) + 1, 0
redis.call('GET', released) -- only for their types
for key = 6, #KEYS do
  if (key - 6) % per_page == 0 then redis.call('GET', KEYS[key]) else redis.call('ZCARD', KEYS[key]) end
end
for page = 0, #ARGV - 7 do
  local key, number = 6 + page * per_page, ARGV[7 + page]
  if redis.call('GET', KEYS[key]) == number then
    redis.call('HDEL', pending, number) -- the first write: one that is allowed when memory is full
    for table = 1, per_page - 1 do redis.call('ZREM', KEYS[key + table], number) end
    redis.call('DEL', KEYS[key], ARGV[5] .. number)
    redis.call('INCR', released)
    gone = gone + 1
  end
end
return answer(gone)
