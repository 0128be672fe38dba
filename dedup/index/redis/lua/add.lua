-- add(KEYS = {..., per page: bucket of its page id, bucket of table 0, 1, ...},
--     ARGV = {..., prefix of pages, number of tables, then per page: record, keys})
--   -> how many pages were filed
-- What comes first: see known.lua.
-- Files pages as those of earlier runs, without judging them: row add absent.  Those that are filed are passed over.
local per_page, filed = tonumber(ARGV[6]) + 1, 0
for key = 5, #KEYS do redis.call('STRLEN', KEYS[key]) end -- only for their types
for page = 0, (#KEYS - 4) / per_page - 1 do
  local first, record, keys = 5 + page * per_page, ARGV[7 + 2 * page], ARGV[8 + 2 * page]
  if not number_of(KEYS[first], key_at(keys, 0)) then
    check_room()
    local number = redis.call('INCR', sequence)
    last = number
    redis.call('SET', ARGV[5] .. number, record)
    for table = 0, per_page - 1 do put_in(KEYS[first + table], key_at(keys, table), number) end
    unbind(as_text(record:sub(RUN_AT, RUN_END)))
    filed = filed + 1
  end
end
if filed > 0 then redis.call('HSET', beginnings, 'added', last) end
return answer(filed)
