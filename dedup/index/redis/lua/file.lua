-- file(KEYS = {..., bucket of the page id, buckets of all tables; then, if the page was filed with other content, released
--              and the buckets that it is in},
--      ARGV = {..., radius, prefix of pages, record, keys, up to which number the lists are complete or '', numbers (4 bytes
--              each) of the pages that it duplicates if they cast a shadow, in this order: equal ones, near-duplicates;
--              of the nearest; 1 if these are all or else 0; SHA-1 of the records of pages
--              that need not be told of if they were filed since, 40 digits each; number under which it was filed
--              with other content or '', how many keys that takes})
--   -> 'same', 1 if known, number of the page if its claim is this run's now or else 0 | 'duplicate', number, 1 if done
--      | 'new', 1 if known, number, number of the page whose place it takes or 0, of the first near one or 0
--      | 'later', last number given out, numbers of pages like it that were filed since | 'again': too many were
--      | 'undecided' | 'changed', number, record: bring its buckets
-- Files a page, unless one of the listed ones casts a shadow: atomic.  It knows no rule of the verdict; that is in
-- dedup/index/weighing.py.  All reads come before any write.
-- What comes first in KEYS, ARGV and the answer: see known.lua.
local outdated = {}
for i = tonumber(table.remove(ARGV)), 1, -1 do outdated[i] = table.remove(KEYS) end
local outdated_number = tonumber(table.remove(ARGV))
local radius, pages, record, keys, seen = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local EQUAL, LIKE, NEAREST, IS_ALL, MET = 10, 11, 12, 13, 14
local own_id = id_of(record)

local filed, filed_record = number_with_id(redis.call('GET', KEYS[5]), key_at(keys, 0), pages, own_id)
local unchanged = filed and filed_record:sub(SIMHASH_AT, SIMHASH_END) == record:sub(SIMHASH_AT, SIMHASH_END)
  and filed_record:sub(DIGEST_AT, DIGEST_END) == record:sub(DIGEST_AT, DIGEST_END)
  and filed_record:sub(SCOPE_AT, SCOPE_END) == record:sub(SCOPE_AT, SCOPE_END)
local was = filed and state_of(filed, pages .. filed)
if was == 'pending' and unchanged then -- row claim pending
  redis.call('HSET', pending, filed, run)
  file_for(pages .. filed, record:sub(RUN_AT, RUN_END))
  return answer('same', 0, filed)
elseif was == 'reclaimed' and unchanged then -- row claim reclaimed
  redis.call('HSET', pending, filed, run)
  return answer('same', has_died(filed_by(pages .. filed)) and 0 or 1, filed)
elseif SHADOWS[was] then
  return answer('same', 0, 0) -- rows claim done, claim safe
end

local function is_like(head, own_bands) -- whether a look would find it
  if head:sub(SCOPE_AT, SCOPE_END) ~= record:sub(SCOPE_AT, SCOPE_END) then return false end
  for at = BANDS_AT, BANDS_AT + #own_bands - 1, BAND do
    if head:sub(at, at + BAND - 1) == record:sub(at, at + BAND - 1) then return true end
  end
  for at = RARE0_AT, RARE0_AT + 8 * RARE - 1, 8 do
    if head:sub(at, at + 7) == record:sub(at, at + 7) then return true end
  end
  local high, low = struct.unpack('>I4I4', record, SIMHASH_AT)
  local a, b = struct.unpack('>I4I4', head, SIMHASH_AT)
  return (radius > 0 and differing_bits(a, b, high, low) <= radius)
    or head:sub(DIGEST_AT, DIGEST_END) == record:sub(DIGEST_AT, DIGEST_END)
    or head:sub(MARKUP_AT, MARKUP_END) == record:sub(MARKUP_AT, MARKUP_END)
end

if seen and last - seen > MAX_LOOKED then return answer('again') end
local later = {}
for number = (seen or last) + 1, last do
  local own_bands = record:sub(BANDS_AT, BANDS_AT + BAND * record:byte(BAND_COUNT_AT) - 1)
  local head = number ~= filed and redis.call('GETRANGE', pages .. number, 0, BANDS_AT + #own_bands - 2) or ''
  if #head == BANDS_AT + #own_bands - 1 and is_like(head, own_bands)
    and not (ARGV[MET] ~= '' and ARGV[MET]:find(redis.sha1hex(redis.call('GET', pages .. number)), 1, true)) then
    later[#later + 1] = number
  end
end
if #later > 0 then return answer('later', last, unpack(later)) end

local known, replaced = 0, 0
for list = EQUAL, LIKE do
  for at = 1, #ARGV[list], 4 do
    local number = struct.unpack('<I4', ARGV[list], at)
    local state = state_of(number, pages .. number)
    if SHADOWS[state] then return answer('duplicate', number, SHADOWS[state] == DONE and 1 or 0) end
    if state == 'earlier' then
      if replaced == 0 then replaced = number end
      if list == EQUAL and not has_died(filed_by(pages .. number)) then known = 1 end
    end
  end
end
if ARGV[IS_ALL] == '0' then return answer('undecided') end

if was == 'earlier' and unchanged then -- row claim earlier
  redis.call('HSET', pending, filed, run)
  return answer('same', has_died(filed_by(pages .. filed)) and 0 or 1, filed)
end
local near = 0
for at = 1, #ARGV[NEAREST], 4 do
  local number = struct.unpack('<I4', ARGV[NEAREST], at)
  if SHADOWS[state_of(number, pages .. number)] then
    near = number
    break
  end
end
if was == 'dead' and unchanged then -- row claim dead
  redis.call('HSET', pending, filed, run)
  file_for(pages .. filed, record:sub(RUN_AT, RUN_END))
  return answer('new', known, filed, replaced, near)
elseif filed and filed ~= outdated_number then
  return answer('changed', filed, filed_record)
end

for i = 5, #KEYS do redis.call('STRLEN', KEYS[i]) end -- only for their types
for i = 1, #outdated do redis.call('STRLEN', outdated[i]) end
if filed then -- rows change earlier, change dead
  check_room()
  redis.call('HDEL', pending, filed)
  redis.call('DEL', pages .. filed)
  redis.call('INCR', outdated[1])
  for i = 2, #outdated do take_out(outdated[i], filed) end
end
return answer('new', known, file_claim(pages, record, keys), replaced, near) -- row claim absent, row change absent
