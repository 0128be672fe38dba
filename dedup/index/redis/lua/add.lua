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
    file_page(first, ARGV[5], record, keys)
    filed = filed + 1
  end
end
return answer(filed)
