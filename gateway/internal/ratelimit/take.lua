-- Lends tokens of one key, which all its rates must have, and takes account of
-- what has become of the lease before. KEYS[1] holds, for each rate, how much
-- was used in which slot (see window.go); a lease stands in the slot of its end
-- until it is settled, for it may be used until then.
--
-- ARGV: the time in microseconds (empty: the server's), the least and the most
-- to lend, the lease to settle (generation, tokens lent, tokens used), tokens
-- used without a lease, how long ago the last token was used and the life of
-- the new lease in microseconds; then for each rate its limit, its period in microseconds, and the slot of the lease to
-- settle. Returns the tokens lent, the generation; then for each rate what is
-- left, the time until more is, the slot, and how many slots follow. These are
-- told when the least cannot be lent, the oldest first: the time until each has
-- left the window, and what was used in it.
local slots = 32
local now = tonumber(ARGV[1])
if not now then
	local t = redis.call('TIME')
	now = t[1] * 1000000 + t[2]
end
local least, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local generation, lent, used = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local unlent, ago, life = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local rates = (#ARGV - 9) / 3

local text = redis.call('GET', KEYS[1])
local state = text and cmsgpack.unpack(text)
if not state or #state.marks ~= rates then
	state = {generation = now, time = now, marks = {}}
end
now = math.max(now, state.time) -- a clock that steps back lets nothing through
state.time = now

local function add(marks, slot, n)
	marks[slot] = (marks[slot] or 0) + n
end

local available, keep = math.huge, 0
local left, oldest = {}, {}
for i = 1, rates do
	local limit, period, slot = tonumber(ARGV[7 + 3 * i]), tonumber(ARGV[8 + 3 * i]), tonumber(ARGV[9 + 3 * i])
	local width = math.floor((period + slots - 1) / slots)
	local last = math.floor((now - ago) / width)
	local marks = state.marks[i] or {}
	state.marks[i] = marks
	if lent > 0 and generation == state.generation and (marks[slot] or 0) >= lent then
		add(marks, slot, -lent)
		add(marks, math.min(slot, last), used)
	else -- forgotten here, and used all the same
		add(marks, last, used)
	end
	add(marks, last, unlent)
	local sum = 0
	for s, n in pairs(marks) do
		if n <= 0 or (s + 1) * width + period <= now then
			marks[s] = nil
		else
			sum = sum + n
			oldest[i] = math.min(oldest[i] or s, s)
		end
	end
	left[i] = limit - sum
	available = math.min(available, left[i])
	keep = math.max(keep, period + life + 2 * width)
end

local grant = 0
if available >= least then -- the last tokens are not for one gateway alone
	grant = math.max(least, math.min(most, math.floor(available / 2)))
end

local answer = {grant, state.generation}
for i = 1, rates do
	local limit, period = tonumber(ARGV[7 + 3 * i]), tonumber(ARGV[8 + 3 * i])
	local width = math.floor((period + slots - 1) / slots)
	local marks = state.marks[i]
	local slot, order = math.floor((now + life) / width), {}
	if available < least then
		for s in pairs(marks) do
			order[#order + 1] = s
		end
		table.sort(order)
	end
	if grant > 0 then
		add(marks, slot, grant)
		oldest[i] = oldest[i] or slot
	end
	answer[#answer + 1] = left[i] - grant
	answer[#answer + 1] = oldest[i] and (oldest[i] + 1) * width + period - now or 0
	answer[#answer + 1] = slot
	answer[#answer + 1] = #order
	for _, s in ipairs(order) do
		answer[#answer + 1] = (s + 1) * width + period - now
		answer[#answer + 1] = marks[s]
	end
end
if grant > 0 or lent > 0 or used + unlent > 0 then
	redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', math.ceil(keep / 1000) + 1000)
end
return answer
