-- add(KEYS = {..., per page: page id, bucket of table 0, 1, ...},
--     ARGV = {..., prefix of pages, number of tables, then per page: record, score in table 0, 1, ...})
--   -> how many pages were filed
-- What comes first: see known.lua.
-- Files pages as those of earlier runs, without judging them: row add absent.  Those that are filed are passed over.
local per_page, filed = tonumber(ARGV[6]) + 1, 0
for key = 5, #KEYS do -- only for their types
  if (key - 5) % per_page == 0 then redis.call('GET', KEYS[key]) else redis.call('ZCARD', KEYS[key]) end
end
for page = 0, (#KEYS - 4) / per_page - 1 do
  local key, argument = 5 + page * per_page, 7 + page * per_page
  if redis.call('EXISTS', KEYS[key]) == 0 then
    local number = redis.call('INCR', sequence)
    last = number
    redis.call('SET', KEYS[key], number)
    redis.call('SET', ARGV[5] .. number, ARGV[argument])
    for table = 1, per_page - 1 do
      redis.call('ZADD', KEYS[key + table], ARGV[argument + table], number)
    end
    filed = filed + 1
  end
end
return answer(filed)
