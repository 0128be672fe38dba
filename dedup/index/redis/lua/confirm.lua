-- confirm(KEYS = {..., released, bucket of a page id, bucket of a page id, ...},
--         ARGV = {..., prefix of pages, run as 16 bytes, keys of the page ids})
--   -> of each page 1 if it is filed, or 0
-- What comes first: see known.lua.  A page that is not pending is passed over.
local released, done, filed = KEYS[5], 0, {}
redis.call('GET', released) -- only for its type
for i = 6, #KEYS do
  local number = number_of(KEYS[i], key_at(ARGV[7], i - 6))
  filed[#filed + 1] = number and 1 or 0
  if number and redis.call('HDEL', pending, number) == 1 then
    done = done + 1 -- row confirm pending
    local page = ARGV[5] .. number
    if not is_alive(filed_by(page)) then file_for(page, ARGV[6]) end -- row confirm reclaimed
  end
end
if done > 0 then take_number_for_change(released) end
return answer(unpack(filed))
