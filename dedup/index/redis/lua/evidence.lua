-- Stands before claim.lua: whether what is a page's own matches, too.  The same as in dedup/fingerprint/chrome.py,
-- from where its constants come, and dedup/index/hosts.py: verdict for verdict.

local function host_of(record, url_at) -- dedup.page.urls.host
  local authority = record:match('^%a[%w+.%-]*://([^/?#]*)', url_at) or ''
  return (authority:gsub('^.*@', ''):lower())
end

-- What a page is called: two words each of heading, names and place, which stand in a record one behind the other.
local function called(record)
  return {struct.unpack('<I4I4I4I4I4I4', record, HEADING_AT)}
end

local function has_heading(page) return page[1] ~= 0 or page[2] ~= 0 end
local function has_names(page) return page[3] ~= 0 or page[4] ~= 0 end
local function has_place(page) return page[5] ~= 0 or page[6] ~= 0 end
local function is_same(a, b, first) return a[first] == b[first] and a[first + 1] == b[first + 1] end

local function is_other_name(own, kept)
  if not (has_names(own) or has_names(kept)) then return false end
  local a, b = bnot(bor(kept[1], kept[3])), bnot(bor(kept[2], kept[4]))
  if has_names(own) and band(own[3], a) == 0 and band(own[4], b) == 0 then return false end
  return not has_names(kept) or band(kept[3], bnot(own.said[1])) ~= 0 or band(kept[4], bnot(own.said[2])) ~= 0
end

local function is_mirror(own, kept) -- of another host, where neither is known
  local differs = has_heading(own) and has_heading(kept) and not is_same(own, kept, 1)
  return not differs and not is_other_name(own, kept)
end

local function is_same_heading(own, kept, view) -- nil if that tells nothing
  if not (has_heading(own) and has_heading(kept)) then return nil end
  if not is_same(own, kept, 1) then return false end
  local named, placed = has_names(kept) and is_same(own, kept, 3), has_place(kept) and is_same(own, kept, 5)
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
  local noise, least = own.has_data and 0 or NOISE, math.max(own.min, UNTOLD)
  if heading then noise, least = NOISE_NAMED, own.min end
  return new <= math.min(noise, NOISE_SHARE * own.shingles) or matching >= least * all
end

-- How the page is looked at by the table of a host.  Its groups are three words each, those first in which most slots
-- are surely own: outside marked chrome, whatever the other page has.
local function view_of(own, if_equal, if_new, heading_tells)
  local view = {if_equal = words_of(if_equal), if_new = words_of(if_new), heading_tells = heading_tells}
  view.groups, view.most = {}, 0 -- most: own slots outside marked chrome, if all are equal
  local words, last = own.words, #own.words - 2
  for first = 1, last + 2, 3 do
    local at = math.min(first, last) -- the last group may begin with words of the one before
    local group, most = {offset = 4 * at - 4, words[at], words[at + 1], words[at + 2], 0, 0, 0}, 0
    for i = first, math.min(first + 2, #words) do
      group[i - at + 4] = band(view.if_new[i], own.main[i])
      most = most + band(view.if_equal[i], own.main[i])
    end
    group.sure, view.most = sum_of_pairs(group[4] + group[5] + group[6]), view.most + sum_of_pairs(most)
    view.groups[#view.groups + 1] = group
  end
  table.sort(view.groups, function(a, b) return a.sure > b.sure end)
  return view
end

-- Whether `suffices` can't be true, as is seen from some of the slots: of those that are own, so many differ that
-- neither few enough are new nor enough match, whatever the others are.
local function is_hopeless(own, kept, view, stored, sketch_at)
  if is_other_name(own, kept) then return true end
  local heading, noise, least = is_same_heading(own, kept, view), 0, math.min(STRICT, STRICTEST)
  if heading then
    noise, least = NOISE_NAMED, own.min
  elseif heading == nil then
    noise, least = NOISE, math.max(own.min, UNTOLD)
  end
  local few = math.min(noise, NOISE_SHARE * own.shingles) * math.max(1, own.filled) / math.max(1, own.shingles)
  local differing, most = 0, math.max((1 - least) * view.most, few) + 1e-6 -- for errors of rounding
  for i = 1, #view.groups do
    local group = view.groups[i]
    local a, b, c = struct.unpack('<I4I4I4', stored, sketch_at + group.offset)
    differing = differing + sum_of_pairs(band(group[4], lanes(bxor(a, group[1])))
      + band(group[5], lanes(bxor(b, group[2]))) + band(group[6], lanes(bxor(c, group[3]))))
    if differing > most then return true end
  end
  return false
end
