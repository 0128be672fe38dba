-- Stands before claim.lua: whether what is a page's own matches, too.  The same as in dedup/fingerprint/chrome.py,
-- from where its constants come, and dedup/index/hosts.py: verdict for verdict.
local NONE = string.rep('\0', HEADING_END - HEADING_AT + 1) -- of what a page may be called

local function host_of(url) -- dedup.page.urls.host
  local authority = url:match('^%a[%w+.%-]*://([^/?#]*)') or ''
  return (authority:gsub('^.*@', ''):lower())
end

local function called(record)
  return {heading = record:sub(HEADING_AT, HEADING_END), names = record:sub(NAMES_AT, NAMES_END),
          place = record:sub(PLACE_AT, PLACE_END)}
end

local function is_within(words, a, b) -- whether each word of a Bloom filter is in one of two others
  for at = 1, #words, 4 do
    local ours, theirs, others = struct.unpack('<I4', words, at), struct.unpack('<I4', a, at), struct.unpack('<I4', b, at)
    if band(ours, bnot(bor(theirs, others))) ~= 0 then return false end
  end
  return true
end

local function is_other_name(own, kept)
  if own.names == NONE and kept.names == NONE then return false end
  return (own.names == NONE or not is_within(own.names, kept.heading, kept.names))
      and (kept.names == NONE or not is_within(kept.names, own.said, own.said))
end

local function is_mirror(own, kept) -- of another host, where neither is known
  local differs = own.heading ~= NONE and kept.heading ~= NONE and own.heading ~= kept.heading
  return not differs and not is_other_name(own, kept)
end

local function is_same_heading(own, kept, view) -- nil if that tells nothing
  if own.heading == NONE or kept.heading == NONE then return nil end
  if own.heading ~= kept.heading then return false end
  local named = kept.names ~= NONE and kept.names == own.names
  local placed = kept.place ~= NONE and kept.place == own.place
  if view.heading_tells or named or placed then return true end
  return nil
end

-- Own slots outside marked chrome, those of them filled in the other, those equal; own ones inside marked chrome,
-- those of them not equal.
local function own_counts(own, filled, same, view) -- filled: lanes of the other
  local outside, both, equal, inside, inside_new = 0, 0, 0, 0, 0
  for first = 1, #same, 3 do
    local o, b, e, i, n = 0, 0, 0, 0, 0 -- lanes of three words add up within 2 bits
    for at = first, math.min(first + 2, #same) do
      local alike, if_new = same[at], view.if_new[at]
      local mine = band(view.if_equal[at], alike) + if_new - band(if_new, alike)
      local main = band(mine, own.main[at])
      local chrome = mine - main
      o, b, e = o + main, b + band(main, filled[at]), e + band(main, alike)
      i, n = i + chrome, n + chrome - band(chrome, alike)
    end
    outside, both, equal = outside + sum_of_pairs(o), both + sum_of_pairs(b), equal + sum_of_pairs(e)
    inside, inside_new = inside + sum_of_pairs(i), inside_new + sum_of_pairs(n)
  end
  return {outside, both, equal, inside, inside_new}
end

local function suffices(own, kept, counts, view, values) -- Evidence.suffices, but for the names
  local outside, both, equal, inside, inside_new = unpack(counts)
  local heading, scale = is_same_heading(own, kept, view), own.shingles / math.max(1, own.filled)
  local match = math.max(0, (values * equal - both) / (values - 1))
  local all = outside + math.min(inside, inside_new * values / (values - 1))
  local matching, new = match * scale, (all - match) * scale
  all = all * scale
  if heading == false then
    return outside + inside >= FEW and matching >= (new <= PARAGRAPH and STRICT or STRICTEST) * all
  end
  local noise, least = NOISE, math.max(own.min, UNTOLD)
  if heading then noise, least = NOISE_NAMED, own.min end
  return new <= math.min(noise, NOISE_SHARE * own.shingles) or matching >= least * all
end
