-- The wait queue of a lock has an entry for each process that waits. This is the first of its six parts. A script that
-- opens wait queues includes the last one, which includes all others. A semaphore's wait queue is stored in the same
-- way, but needs none of the others; see permits_queue.lua.
--
--   wait_queue_entries.lua   what is stored
--   wait_queue_read.lua      how it is read and written
--   wait_queue_order.lua     the entries in their order
--   wait_queue_transfer.lua  which client is the first, and how it gets the lock
--   wait_queue_claim.lua     a client asks for the lock, and gets an entry if it is refused
--   wait_queue.lua           a client leaves, or releases the lock; wait_queue() opens a queue
--
-- The wait queue is a hash and a sorted set alongside the lock's hash, which Redisson does not know. The hash has all
-- that is known of the entries:
--
--   client uuid -> "<arrived> <seen> <ttl> <term> <seq> <mode> <tokens> <listens>[ <reserved>]"
--                  the entry of a client: when it was added and when the client was last seen
--                  (epoch, µs); for how many ms from then the entry counts, which is also the
--                  lease of a transfer to it; the term under which the client waits; the command
--                  that added or confirmed the entry; the mode ("0" exclusive, "1" shared); how
--                  many fencing tokens a transfer draws for it; and "1" if the client listens on
--                  its turn channel. The entry of a MultiLock reserves the lock: it gets no
--                  transfer, but while it is the first, a free lock is reserved for it since <reserved>, for half of
--                  its <ttl>, but at most MAX_RESERVED: "0" is not yet, and "-" no longer, since that was too long.
--                  If it wants to read, it keeps no reader from joining others; see transfer_next for when it is woken
--   open        -> until when (epoch, µs) the free lock is left to foreign clients
--   turns       -> how many transfers there were since it was last left to them, while any waited
--
-- The sorted set has their order, so that no script reads all entries:
--
--   "-<client uuid>" -> minus when the entry expires, so that the first to expire are the last below 0
--   client uuid      -> when the entry was added, if it counts: it listens, or reserves the lock. If it does neither,
--                       2 * HALF are subtracted, so that foreign clients are below all others. A MultiLock for which
--                       the lock is no longer reserved has no such member
--
-- If the two do not agree, since one was lost or has garbage, the order is made anew from the hash.
--
-- Foreign clients are those that cannot get a transfer: clients without an entry, such as Redisson's, and
-- clients whose entry does not listen. Any other field or value is garbage, and is removed.
--
-- An entry in the ARGV of a script is "<ttl> <term> <seq> <mode> <tokens> <listens>" (scripts.go has its pattern), with
-- " r" after it if it reserves the lock, and "" for none. After the "r" is for how many µs the client has waited for
-- several locks that no single script takes; see add_since. The settings are "<open time> <one server> <period>": for
-- how many ms a lock is left to foreign clients; "1" if there is one server, no cluster, so that it knows all
-- subscribers; and every how many ms a lock is left to foreign clients that are not seen (0: never). Clients may differ
-- in their TTL, and each trusts a transfer for its own.
--
-- Most wait queues are empty. A script calls size_of, and wait_queue only if it must, so that an empty one costs one
-- command. For the same reason, the functions of a queue are closures, which are made when it is opened. As functions
-- of the whole script, with the queue as an argument, they are no faster, and cost every script that finds it empty.
-- What scripts do most often with a queue is written a second time, without these functions: in confirm_entry.lua and
-- transfer_to_first.lua.

-- The form of a client, in lower case.
local CLIENT = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$'

-- Times in µs are less than 2^52 until the year 2112, and scores are exact up to twice that.
local HALF = 4503599627370496

-- Returns the key of the sorted set of a wait queue.
local function order_of(key)
  return (string.gsub(key, 'queue', 'order', 1))
end

-- Reports whether there is one server, no cluster.
local function has_one_server(settings)
  return string.find(settings, ' 1 ', 1, true) ~= nil
end

-- Reports whether a text is a number of at most so many digits.
local function has_digits(text, max)
  return #text <= max and string.find(text, '^%d+$')
end

-- Returns the entry of a client, nil if the text is not one, or the entry has expired.
local function parse_entry(client, text, now)
  local core, arrived, seen, ttl, term, seq, mode, tokens, listens, reserved = string.match(text, ANY_ENTRY)
  local is_entry = core and string.find(client, CLIENT) and not string.find(client, '%u')
    and #arrived <= 17 and tonumber(arrived) < HALF and #seen <= 17 and #ttl <= 13 and tonumber(ttl) <= MAX_ENTRY_TTL
    and #term <= 20 and #seq <= 20 and #tokens <= 10 and (reserved == '' or reserved == '-' or has_digits(reserved, 17))
  -- A clock that was set back must not keep an entry for long.
  if not is_entry or math.abs(now - seen) >= ttl * 1000 then
    return nil
  end
  if reserved ~= '' and reserved ~= '-' and tonumber(reserved) > now then
    reserved = '0'
  end
  return {
    client = client, text = core, term = term, seq = seq, mode = mode, tokens = tokens,
    arrived = arrived, at = tonumber(arrived), ttl = tonumber(ttl), ends = seen + ttl * 1000,
    listens = listens == '1', reserved = reserved ~= '' and reserved,
  }
end

-- Reports whether an entry keeps others waiting.
local function is_ordered(entry)
  if entry.reserved then
    return entry.reserved ~= '-'
  end
  return entry.listens
end

-- Puts an entry into the sorted set, with one or two members; see above.
local function put_in_order(order, entry)
  local score = is_ordered(entry) and entry.at or not entry.reserved and entry.at - 2 * HALF
  if score then
    redis.call('ZADD', order, -entry.ends, '-' .. entry.client, score, entry.client)
  else
    redis.call('ZADD', order, -entry.ends, '-' .. entry.client)
  end
end

-- Returns the rest of the key of a wait queue, which the keys and channels of a lock have in common.
local function of_lock(key)
  return string.sub(key, (string.find(key, ':', 1, true)))
end

-- Returns the number of subscribers of a lock's channel that do not use its wait queue, as far as this server has them.
-- Clients that use it also subscribe to a second channel.
local function foreign_subscribers(key, channel)
  local n = redis.call('PUBSUB', NUMSUB, channel, WAITERS_CHANNEL .. of_lock(key))
  return math.max(n[2] - n[4], 0)
end

-- Returns the channel on which the client of an entry hears that its turn has come. With sharded pub/sub, a client has
-- a channel for each lock, since the channel must be in the lock's slot.
local function turn_channel(key, entry)
  return TURN_CHANNEL .. entry.client .. (SHARDED and of_lock(key) or '')
end
