-- beat(KEYS = {state, seen}, ARGV = {ask, (shard, member, link)..., (shard, ticket, request, key)...}) -> {word, ...}:
-- see dedup/contrib/workers/handover.py
local state, seen = KEYS[1], KEYS[2]
local ask = cjson.decode(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function get(name) return redis.call('HGET', state, name) or nil end
local function set(name, value) redis.call('HSET', state, name, value) end
local function drop(name) redis.call('HDEL', state, name) end
local function log(shard) return ask.prefix .. 'log:' .. shard end
local function rest(shard) return ask.prefix .. 'rest:' .. shard end
local function past(shard) return ask.prefix .. 'past:' .. shard end
local function length(shard) return redis.call('LLEN', log(shard)) end
local function waiting(shard) return length(shard) - (get('done:' .. shard) or 0) + redis.call('HLEN', rest(shard)) end

-- A lease that would last for longer than any is of a time before the clock was set back, and has run out.
local function holder(shard)
  local who, till = string.match(get('lease:' .. shard) or '', '^(%x+) (%d+)$')
  till = tonumber(till)
  return till and till > now and till <= now + ask.lease and who or nil
end

local function hold(shard) set('lease:' .. shard, ask.me .. ' ' .. string.format('%.0f', now + ask.lease)) end

-- Whether all that was handed to a shard was crawled, and all that this led to.
local function is_done(shard)
  local done = get('done:' .. shard)
  if not done and not holder(shard) and redis.call('HLEN', rest(shard)) == 0 then done = 0 end
  return tonumber(done) == length(shard)
end

local function every(test)
  for shard = 0, tonumber(get('shards')) - 1 do
    if not test(shard) then return false, shard end
  end
  return true
end

local function forget()
  for shard = 0, tonumber(get('shards')) - 1 do redis.call('DEL', log(shard), rest(shard), past(shard)) end
  redis.call('DEL', state, seen)
end

local function nobody() return every(function(shard) return not holder(shard) end) end

if ask.leave then
  for _, each in ipairs(ask.held) do
    if holder(each[1]) == ask.me then
      drop('lease:' .. each[1])
      if ask.leave ~= 'finished' then
        drop('done:' .. each[1])
        set('left:' .. each[1], ask.leave)
      end
    end
  end
  if get('crawl') == ask.crawl and get('ended') and nobody() and every(is_done) then forget() end
  return {'left'}
end

-- Which crawl it is.  A new one takes the place of one that nobody is in any more, unless jobs are to go on with it, or
-- what its workers have left is to be crawled.
if ask.crawl == '' and get('crawl') then
  if not nobody() then
    if get('ended') then return {'ending'} end
  elseif every(function(shard) return get('left:' .. shard) ~= 'job' end) and (not ask.journal or every(is_done)) then
    forget()
  else
    drop('ended')
  end
end
if not get('crawl') and ask.crawl == '' then
  redis.call('HSET', state, 'crawl', ask.new, 'shards', ask.shards, 'began', string.format('%.0f', now))
elseif ask.crawl ~= '' and get('crawl') ~= ask.crawl then
  return {get('crawl') and 'replaced' or 'gone'}
end
if tonumber(get('links') or 0) < ask.links then return {'older'} end
if tonumber(get('shards')) ~= ask.shards then return {'other', get('shards')} end

-- Links that no worker has handed over yet are put at the ends of the logs.
local new = 0
local notes = 2 + 3 * ask.found
for at = 2, notes - 1, 3 do
  if redis.call('SADD', seen, ARGV[at + 1]) == 1 then
    redis.call('RPUSH', log(ARGV[at]), ARGV[at + 2])
    redis.call('HINCRBY', state, 'links', 1)
    drop('ended')
    new = new + 1
  end
end

-- Shards are held, or taken.
local held = {}
local function take(shard, cursor)
  hold(shard)
  drop('left:' .. shard)
  drop('ended')
  held[#held + 1] = {shard, cursor or tonumber(get('done:' .. shard) or 0), ask.journal and 0 or nil}
end

for _, each in ipairs(ask.held) do
  local who = holder(each[1])
  if who and who ~= ask.me then return {'lost', tostring(each[1])} end
  hold(each[1])
  held[#held + 1] = each
end

-- The shards are this worker's own: what it has scheduled, and what is done, is noted in the order in which it happened.
for at = notes, #ARGV, 4 do
  local shard, ticket, request, key = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if request ~= '' then redis.call('HSET', rest(shard), ticket, request) else redis.call('HDEL', rest(shard), ticket) end
  if key ~= '' then redis.call('APPEND', past(shard), key) end
end
redis.call('HINCRBY', state, 'links', (#ARGV + 1 - notes) / 4)

local function is_read()
  for _, each in ipairs(held) do
    if each[3] or each[2] < length(each[1]) then return false end
  end
  return true
end
local function take_first(test)
  for shard = 0, ask.shards - 1 do
    if not holder(shard) and test(shard) then return take(shard) end
  end
end
if #held == 0 then
  if not ask.any then
    local who = holder(ask.wanted)
    if who and who ~= ask.me then return {'held', get('crawl')} end
    take(ask.wanted, ask.cursor >= 0 and ask.cursor or nil)
  elseif not get('ended') then
    take_first(function(shard) return not is_done(shard) end)
    if #held == 0 then take_first(function() return true end) end
  end
elseif ask.any and ask.idle and is_read() and now > get('began') + ask.lease then
  take_first(function(shard) return not is_done(shard) end) -- others have had the time to start, or have died
end

-- What was handed to them is read, as far as they have not; what was noted of a shard that was just taken comes first.
local idle = ask.idle and is_read()
local logs = {}
for _, each in ipairs(held) do
  local shard, cursor = each[1], each[2]
  local most = each[3] or ask.most
  logs[#logs + 1] = {shard, cursor, most > 0 and redis.call('LRANGE', log(shard), cursor, cursor + most - 1) or {}}
  if idle then set('done:' .. shard, cursor) else drop('done:' .. shard) end
end

-- The crawl has ended as soon as every shard is done, or was left on purpose.
local missing = -1
if idle then
  local all, first = every(function(shard)
    return is_done(shard) or (get('left:' .. shard) and not holder(shard))
  end)
  if all then set('ended', 1) elseif not holder(first) then missing = first end
end
-- Whoever watches is told of every shard: its lease in ms, and the links that wait there if nobody holds it.
local rows = {}
for shard = 0, ask.survey and ask.shards - 1 or -1 do
  local who = holder(shard)
  local lease = who and tonumber(string.match(get('lease:' .. shard), '%d+$')) - now or 0
  rows[#rows + 1] = {lease, who and 0 or waiting(shard)}
end

local links = tonumber(get('links') or 0)
return {'ok', get('crawl'), get('ended') and 1 or 0, links, new, missing, missing < 0 and 0 or waiting(missing), logs, rows}
