-- confirm(KEYS = {..., released}, ARGV = {..., prefix of pages, this run or that of its crawl, as 16 bytes, number of a page,
--              number of a page, ...})
--   -> of each page 1 if it is filed, or 0
-- What comes first: see known.lua.  A page that is not pending is passed over.  One that was taken out and claimed anew
-- has another number, and so has one with other content.
local released, done, filed = KEYS[5], 0, {}
local is_inherited = as_text(ARGV[6]) ~= run
redis.call('GET', released) -- only for its type
for i = 7, #ARGV do
  local page = ARGV[5] .. ARGV[i]
  local filer = filed_by(page)
  filed[#filed + 1] = filer ~= '' and 1 or 0
  if redis.call('HDEL', pending, ARGV[i]) == 1 then
    done = done + 1 -- row confirm pending
    if is_inherited or not is_alive(filer) then file_for(page, ARGV[6]) end -- row confirm reclaimed
  end
end
if is_inherited and end_of(crawl) <= now then redis.call('ZADD', runs, now + lease, crawl) end
if done > 0 then take_number_for_change(released) end
return answer(unpack(filed))
