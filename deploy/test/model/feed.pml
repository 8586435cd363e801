/*
 * A model of the feed's protocol (assetsvc/internal/feed), small enough for a
 * search of all histories. README.md describes the protocol and the limits of
 * the model.
 *
 * The wire: a message stays on the wire, and may be applied at any later moment
 * and more than once. So late, repeated, unanswered and lost messages need no
 * steps of their own. (A lost message is never applied, or only when its guard
 * fails.) Sending a message again adds nothing. A call with an answer is one step
 * of its writer, which applies the message and continues. A stalled writer takes
 * its next step late.
 *
 * Each variant is a definition that leaves one part out. README.md lists them.
 * PROMPT checks a property that the protocol does not have.
 */
#ifndef WRITERS
#define WRITERS	2
#endif
#ifndef RUN
#define RUN	2	/* batches of the first writer; the others write one each */
#endif
#ifndef DOCS
#define DOCS	2	/* 1 to 3; the first exists at the start, the others do not */
#endif
#ifndef FENCES
#define FENCES	1	/* times that a batch's fence may be applied to a document */
#endif
#ifndef OPENS
#define OPENS	1	/* times that a batch may send Open; all but the last are refused */
#endif
#ifndef AHEAD
#define AHEAD	0	/* positions that a writer's wall clock may skip */
#endif

/* PLAIN leaves the record out. A writer then knows which writes were applied. */
#if DOCS > 2 && !defined(PLAIN)
#error "a record has at most two documents"
#endif
#if defined(REPLACE) || defined(ERASE_BEFORE)
#define ERASES
#endif

#define BATCHES		(RUN + WRITERS - 1)
#define OWNER(b)	((b) < RUN -> 0 : (b) - RUN + 1)
#define START(w)	((w) == 0 -> 0 : RUN + (w) - 1)
#define END(w)		(RUN + (w))
#define OF(b, d)	((b) * DOCS + (d))
#define IN(set, d)	(((set) >> (d)) & 1)
#define HAS(b, d)	IN(docs[b], d)
#if DOCS == 1
#define EVERY(P, b)	P(b, 0)
#elif DOCS == 2
#define EVERY(P, b)	(P(b, 0) && P(b, 1))
#else
#define EVERY(P, b)	(P(b, 0) && P(b, 1) && P(b, 2))
#endif
#if BATCHES == 2
#define ANY(P, d, x)	(P(0, d, x) || P(1, d, x))
#elif BATCHES == 3
#define ANY(P, d, x)	(P(0, d, x) || P(1, d, x) || P(2, d, x))
#else
#define ANY(P, d, x)	(P(0, d, x) || P(1, d, x) || P(2, d, x) || P(3, d, x))
#endif

/* The clock. */
byte last = 1;			/* newest position given out */
byte open[WRITERS];		/* first position of the batch in flight; 0: none */

/*
 * The documents. A revision only rises, and is compared only with an earlier one.
 * So one bit for each guard is enough: whether it still holds.
 */
bit there[DOCS];
byte position[DOCS];		/* 0 for a document that is there: a void */

/* The batches, and their messages on the wire. */
byte docs[BATCHES];		/* set of its documents */
byte first[BATCHES];		/* Open was sent with this position; 0: not yet */
byte opened[BATCHES];		/* times that Open was applied */
bit writing[BATCHES];		/* Write was sent */
bit closing[BATCHES];		/* Close was sent by the writer */
byte fenced[BATCHES * DOCS];	/* times that Fence was applied to the document */
bit guard[BATCHES * DOCS];	/* the document has the revision that was read */
bit applied[BATCHES * DOCS];	/* Write was applied to the document */

#ifndef PLAIN
/*
 * The record of each batch. A batch that sends Open again has a new one. The model
 * forgets the old one, which has no change that readers are ever shown.
 */
bit given[BATCHES];		/* Open was applied with the positions of the record */
bit stored[BATCHES];		/* the record exists */
byte record[BATCHES];		/* set of the documents whose changes it has */
bit shown[BATCHES];		/* readers are shown it */
byte before[BATCHES * DOCS];	/* position of the document that the change was made from */
#define NOWHERE	255		/* a position that no document has */
byte removals[BATCHES];		/* set of the sets that a Settle was sent to remove */
bit settled[BATCHES];		/* a Settle was applied */
bit deleting[BATCHES];		/* Open was refused, and the deletion of the record was sent */
#endif
#ifdef ERASES
bit erased[BATCHES];		/* the contents of the record were erased */
#endif

/* The outcome of a write, as its writer has found it. */
#define YES	1
#define NO	2
byte said[BATCHES * DOCS];

/* A reader. */
byte horizon = 1;		/* by the clock that it has read */
byte offset = 1;		/* end of the last page */
bit seen[DOCS];			/* it has seen the document at its position */

#ifdef PAGE_FIRST
byte found[DOCS];		/* the page, read before the clock */
#endif

byte i, sum;			/* used within a step only, 0 between steps */

/* at is the position that batch b gives document d. */
#define at(b, d)	(first[b] + ((d) > 0 && HAS(b, 0)) + ((d) > 1 && HAS(b, 1)))
#define newest(b)	(at(b, DOCS) + ((DOCS) > 2 && HAS(b, 2)) - 1)

/* HORIZON is the position up to which nothing more can appear. */
#define until(w, h)	(open[w] != 0 && open[w] <= (h) -> open[w] - 1 : (h))
#ifdef NAIVE
#define HORIZON	last
#elif WRITERS == 2
#define HORIZON	until(1, until(0, last))
#else
#define HORIZON	until(2, until(1, until(0, last)))
#endif

/* Whether batch b is in flight. */
#define onClock(b)	(first[b] != 0 && open[OWNER(b)] == first[b])

/*
 * The store's operations. Each is one step for each document that it touches.
 */

#ifdef OPEN_UNGUARDED
#define openHolds(b)	(open[OWNER(b)] != first[b])
#else
#define openHolds(b)	(last < first[b])
#endif

inline applyOpen(b) {
	last = newest(b);
	open[OWNER(b)] = first[b];	/* this closes the writer's previous batch */
	opened[b]++;
#ifndef PLAIN
	given[b] = 1;
#endif
	printf("store: Open gives batch %d positions %d to %d\n", b, first[b], last)
}

#ifdef CLOSE_UNGUARDED
#define closeHolds(b)	(open[OWNER(b)] != 0)
#else
#define closeHolds(b)	onClock(b)
#endif

inline applyClose(b) {
	printf("store: Close, sent for batch %d, takes the batch at %d off the clock\n", b, open[OWNER(b)]);
	open[OWNER(b)] = 0
}

#ifdef WRITE_UNGUARDED
#define writeHolds(b, d)	(!applied[OF(b, d)])
#else
#define writeHolds(b, d)	(guard[OF(b, d)])
#endif

/* raise raises a document's revision. */
inline raise(d) {
	i = 0;
	do
	:: i < BATCHES -> guard[OF(i, d)] = 0; i++
	:: else -> break
	od;
	i = 0
}

inline applyWrite(b, d) {
	sum = at(b, d);
	printf("store: Write of batch %d puts document %d at %d\n", b, d, sum);
	assert(sum > offset);		/* F1: after every reader */
	assert(sum > position[d]);	/* F3: a document only moves up */
	assert(sum <= last);		/* F3: at most to the clock */
	assert(said[OF(b, d)] != NO);	/* a refused write never lands */
	i = 0;
	do
	:: i < DOCS -> assert(sum != position[i]); i++	/* F3: to a position of its own */
	:: else -> break
	od;
	there[d] = 1;
	raise(d);
	position[d] = sum;
	sum = 0;
	seen[d] = 0;
	applied[OF(b, d)] = 1
}

inline applyFence(b, d) {
#if defined(NO_RAISE)
	skip;
#elif defined(NO_VOID)
	if
	:: there[d] -> raise(d)
	:: else
	fi;
#else
	there[d] = 1;			/* a void if it did not exist */
	raise(d);
#endif
	fenced[OF(b, d)]++;
	printf("store: Fence, for batch %d, of document %d\n", b, d)
}

#define isVoid(d)	(there[d] && position[d] == 0)
#define isFenced(b, d)	(!HAS(b, d) || fenced[OF(b, d)] > 0)
#define arrives(b, d)	(writing[b] && HAS(b, d) && writeHolds(b, d))
#define fences(b, d)	(opened[b] > 0 && HAS(b, d) && fenced[OF(b, d)] < FENCES && \
			(onClock(b) || guarded(d) || !there[d]))	/* else it has no effect */
#define hasGuard(b, d, x)	guard[OF(b, d)]
#define guarded(d)	ANY(hasGuard, d, 0)
#define isOver(b, d)	(!guard[OF(b, d)])
#define isYes(b, d)	(!HAS(b, d) || said[OF(b, d)] == YES)
#define isApplied(b, d)	(!HAS(b, d) || applied[OF(b, d)])
#define isDone(b, d)	(isApplied(b, d) || !writeHolds(b, d))

#ifdef PLAIN
#define isAnswered(b)	EVERY(isDone, b)
#define isSettled(b)	EVERY(isFenced, b)
#define outcome(b, d)	(applied[OF(b, d)] -> YES : NO)
#else
/*
 * The operations on the record.
 */

#ifdef VISIBLE
#define content(b)	record[b]
#else
#define content(b)	(shown[b] -> record[b] : 0)	/* for readers */
#endif

/* keep ends a step on the record of batch b. Before it, readers saw the set sum. */
inline keep(b) {
	assert(first[b] > horizon || content(b) == sum);	/* R2 */
	sum = 0
}

#if defined(INSERT_LATE)
#define inserts(b)	(writing[b] && !stored[b])
#elif defined(INSERT_REPLACES)
#define inserts(b)	(first[b] != 0 && record[b] != docs[b])
#else
#define inserts(b)	(first[b] != 0 && !stored[b])
#endif

inline applyInsert(b) {
	sum = content(b);
	stored[b] = 1;
	record[b] = docs[b];
	printf("store: the record of batch %d is inserted\n", b);
	keep(b)
}

#ifdef DELETE_SHOWN
#define deletes(b)	(deleting[b] && stored[b])
#else
#define deletes(b)	(deleting[b] && stored[b] && !shown[b])
#endif

inline applyDelete(b) {
	sum = content(b);
	stored[b] = 0;
	record[b] = 0;
	shown[b] = 0;
	printf("store: the record of batch %d is deleted\n", b);
	keep(b)
}

#define shows(b)	(writing[b] && stored[b] && !shown[b])

inline applyShow(b) {
	sum = content(b);
	shown[b] = 1;
	printf("store: the record of batch %d is shown\n", b);
	keep(b)
}

/* Settle begins when no write of the batch can be applied any more. */
#if defined(SETTLE_UNFENCED)
#define settles(b)	(given[b])
#elif defined(NO_OWN_FENCE)
#define settles(b)	(given[b] && (EVERY(isFenced, b) || writing[b]))
#else
#define settles(b)	(given[b] && (EVERY(isFenced, b) || writing[b] && EVERY(isDone, b)))
#endif

/* insertEmpty inserts a record without changes, so that a late insert has no effect. */
inline insertEmpty(b) {
	stored[b] = 1;
	printf("store: the record of batch %d is inserted empty\n", b)
}

/* SET is the documents in the record of batch b that P holds for. */
#if DOCS == 1
#define SET(P, b)	(record[b] & P(b, 0))
#else
#define SET(P, b)	(record[b] & (P(b, 0) | P(b, 1) << 1))
#endif
#define isHigher(b, d)	(position[d] > at(b, d))
#define isLower(b, d)	(position[d] < at(b, d))

/* A follower is a change that was made from the position of this change, which so has landed. */
#define follows(b, d, p)	(IN(record[b], d) && before[OF(b, d)] == (p))
#if defined(HIGHER_NO)
#define isFollowed(b, d)	0
#elif defined(HIGHER_YES)
#define isFollowed(b, d)	1
#else
#define isFollowed(b, d)	ANY(follows, d, at(b, d))
#endif
#define isMissing(b, d)	(isLower(b, d) || isHigher(b, d) && !isFollowed(b, d))

/* remove sends the last operation of a Settle. */
inline remove(b, missing) {
#ifdef REPLACE
	sum = record[b] & ~(missing);
#else
	sum = missing;
#endif
	removals[b] = removals[b] | (1 << sum);
	printf("a Settle of batch %d finds that the set %d has not landed\n", b, missing);
	sum = 0
}

/* isNews tells whether a removal of the set would have an effect, and was not sent yet. */
#define isNews(b, missing)	((!settled[b] || (missing) != 0) && !IN(removals[b], missing))

#ifdef REPLACE
#define rest(b, set)	(set)
#else
#define rest(b, set)	(record[b] & ~(set))
#endif
#define removes(b, set)	\
	(IN(removals[b], set) && stored[b] && (!settled[b] || !shown[b] || record[b] != rest(b, set)))

inline applyRemoval(b, set) {
	sum = content(b);
	record[b] = rest(b, set);
	shown[b] = 1;
	settled[b] = 1;
	printf("store: the record of batch %d is shown, with the set %d\n", b, record[b]);
#ifdef REPLACE
	assert(!erased[b]);
#endif
#ifdef FORGET
	assert(removals[b] == 1 << (set));	/* so a second copy has no effect */
	removals[b] = 0;
#endif
	keep(b)
}

#ifdef SHOW_UNAWAITED
#define isAnswered(b)	(EVERY(isApplied, b) || settled[b] && EVERY(isDone, b))
#else
#define isAnswered(b)	(EVERY(isApplied, b) && shown[b] || settled[b] && EVERY(isDone, b))
#endif
#ifdef NO_SETTLE
#define isSettled(b)	EVERY(isFenced, b)
#else
#define isSettled(b)	(settled[b] && EVERY(isFenced, b))
#endif
#define outcome(b, d)	(IN(record[b], d) -> YES : NO)
#endif

/* The steps of a writer. */

/* learn takes the outcome of batch b. */
inline learn(b) {
	i = 0;
	do
	:: i < DOCS ->
		if
		:: HAS(b, i) -> said[OF(b, i)] = outcome(b, i)
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* acknowledge answers the callers of batch b. */
inline acknowledge(b) {
	printf("writer %d tells the callers of batch %d\n", OWNER(b), b);
	assert(!onClock(b));
#ifdef PROMPT
	assert(!EVERY(isYes, b) || HORIZON >= first[b]);
#endif
	i = 0;
	do
	:: i < DOCS ->
		assert(said[OF(b, i)] != YES || applied[OF(b, i)] && position[i] >= at(b, i));
		assert(said[OF(b, i)] != NO || !applied[OF(b, i)]);
		i++
	:: else -> break
	od;
	i = 0;
#ifdef FORGET
	forget(b)
#endif
}

/* forget clears messages without any later effect, to save states. */
inline forget(b) {
	i = 0;
	do
	:: i < DOCS ->
		if
		:: !guard[OF(b, i)] ->
			said[OF(b, i)] = 0;
#ifdef PLAIN
			applied[OF(b, i)] = 0
#endif
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0;
	assert(first[b] <= last);
	closing[b] = 0;
#ifdef PLAIN
	first[b] = 0;
	if
	:: EVERY(isOver, b) -> writing[b] = 0
#else
	if
	:: EVERY(isOver, b) && shown[b] -> writing[b] = 0
#endif
	:: else
	fi
}

/* Writer is the Writer of one process. It may crash at each wait. */
proctype Writer(byte w) {
	byte b = START(w);	/* the current batch */
	byte known;		/* newest position that it knows of */
	bit written;		/* batch b - 1 is still on the clock */
	byte d;

	do
	:: b < END(w) ->
		/* gather: callers have read documents and change them */
		atomic {
			do
			:: d < DOCS && !isVoid(d) -> docs[b] = docs[b] | (1 << d); d++
			:: d < DOCS -> d++
			:: d == DOCS && docs[b] == 0 -> docs[b] = 1	/* document 0 is never a void */
			:: d == DOCS && docs[b] != 0 -> break
			od;
			do
			:: d > 0 ->
				d--;
				guard[OF(b, d)] = HAS(b, d);
#ifndef PLAIN
				before[OF(b, d)] = (HAS(b, d) -> position[d] : NOWHERE)
#endif
			:: else -> break
			od;
take:			if	/* positions by a slow, right or fast wall clock */
#ifdef NO_MEMORY
			:: first[b] = last
#else
			:: first[b] = known + 1
#endif
			:: last > known -> first[b] = last + 1
			:: AHEAD > 0 -> first[b] = last + 1 + AHEAD
			fi;
#ifndef PLAIN
			assert(content(b) == 0);
			given[b] = 0;
			stored[b] = 0;
			record[b] = 0;
			shown[b] = 0;
			removals[b] = 0;
			settled[b] = 0;
#endif
			printf("writer %d sends Open of batch %d at %d\n", w, b, first[b]);
			known = 0	/* saves states: the value is not used before its next change */
		};
		/* open, and write */
		atomic {
			if
			:: openHolds(b) -> d_step { applyOpen(b) }
			:: !openHolds(b) && open[w] == first[b]	/* an earlier copy was applied */
			:: !openHolds(b) && open[w] != first[b] && opened[b] < OPENS ->
				printf("writer %d was refused\n", w);
				known = last;
				goto take
#ifndef PLAIN
			:: !openHolds(b) && open[w] != first[b] ->
				printf("writer %d was refused, and deletes the record of batch %d\n", w, b);
				deleting[b] = 1;
				goto dead
#endif
			:: printf("writer %d crashes\n", w) -> goto dead
			fi;
			known = last;
#if !defined(PLAIN) && !defined(INSERT_LATE)
			if
			:: inserts(b) -> d_step { applyInsert(b) }
			:: else				/* an earlier copy was applied, or a Settle came first */
			fi;
#endif
			if
			:: written -> d_step { acknowledge(b - 1) }
			:: else
			fi;
			printf("writer %d sends Write of batch %d\n", w, b);
			writing[b] = 1
		};
		atomic {
			if
			:: isAnswered(b)	/* an answer came: settle, if a write was refused */
			:: isSettled(b)		/* an error came: fence, then settle */
#ifdef NO_OWN_FENCE
			:: settled[b]		/* an error came: settle */
#endif
			:: printf("writer %d crashes\n", w) -> goto dead
			fi;
			printf("writer %d knows the outcome of batch %d\n", w, b);
			d_step { learn(b) };
			written = 1;
			b++
		}
	:: atomic { written -> closing[b - 1] = 1; printf("writer %d sends Close of batch %d\n", w, b - 1) };
		atomic {
			if
			:: closeHolds(b - 1) -> d_step { applyClose(b - 1) }
			:: !closeHolds(b - 1)		/* an earlier copy was applied */
			:: printf("writer %d crashes\n", w) -> goto dead
			fi;
			d_step { acknowledge(b - 1) };
			written = 0
		}
	:: b == END(w) && !written -> break
	od;
dead:	atomic { b = 0; known = 0; written = 0 }	/* saves states */
}

/* Wire applies the messages of a batch: late, again, or without an answer. */
proctype Wire(byte b) {
end:	do
	:: d_step { first[b] != 0 && openHolds(b) -> applyOpen(b) }
#ifndef PLAIN
	:: d_step { inserts(b) -> applyInsert(b) }
	:: d_step { deletes(b) -> applyDelete(b) }
	:: d_step { shows(b) -> applyShow(b) }
	:: d_step { removes(b, 0) -> applyRemoval(b, 0) }
	:: d_step { removes(b, 1) -> applyRemoval(b, 1) }
#if DOCS > 1
	:: d_step { removes(b, 2) -> applyRemoval(b, 2) }
	:: d_step { removes(b, 3) -> applyRemoval(b, 3) }
#endif
#endif
	:: d_step { closing[b] && closeHolds(b) -> applyClose(b) }
	:: d_step { arrives(b, 0) -> applyWrite(b, 0) }
#if DOCS > 1
	:: d_step { arrives(b, 1) -> applyWrite(b, 1) }
#endif
#if DOCS > 2
	:: d_step { arrives(b, 2) -> applyWrite(b, 2) }
#endif
	od
}

/*
 * Watcher is the watchers of all processes. Each has seen the batch on the clock
 * for longer than its lease, which may be any time, and acts at any later moment.
 * It also stands for the writer's own Fence and Settle, which have the same effect.
 */
proctype Watcher(byte b) {
#ifndef PLAIN
	byte looking;		/* a Settle has read the record at this position, and its documents: */
	byte lower, higher;	/* these are below and above their positions */
#endif

end:	do
	:: d_step { fences(b, 0) -> applyFence(b, 0) }
#if DOCS > 1
	:: d_step { fences(b, 1) -> applyFence(b, 1) }
#endif
#if DOCS > 2
	:: d_step { fences(b, 2) -> applyFence(b, 2) }
#endif
	:: d_step { opened[b] > 0 && isSettled(b) && closeHolds(b) -> applyClose(b) }
#ifndef PLAIN
#ifdef NO_EMPTY
	:: d_step { settles(b) && !stored[b] -> settled[b] = 1 }
#else
	:: d_step { settles(b) && !stored[b] -> insertEmpty(b) }
#endif
#ifdef READ_FIRST
	:: d_step { settles(b) && !stored[b] && !IN(removals[b], 0) -> remove(b, 0) }
#endif
	:: d_step { settles(b) && stored[b] && isNews(b, SET(isMissing, b)) -> remove(b, SET(isMissing, b)) }
#ifdef FOLLOWERS_FIRST
	:: d_step { settles(b) && stored[b] && looking == 0 -> looking = first[b]; higher = SET(isFollowed, b) }
	:: d_step { looking != 0 ->
		if
		:: looking == first[b] -> remove(b, SET(isLower, b) | SET(isHigher, b) & ~higher)
#else
	:: d_step { settles(b) && stored[b] && looking == 0 && SET(isHigher, b) != 0 ->
		looking = first[b];
		lower = SET(isLower, b);
		higher = SET(isHigher, b)
	   }
	:: d_step { looking != 0 ->
		if
		:: looking == first[b] -> remove(b, lower | higher & ~SET(isFollowed, b))
#endif
		:: else
		fi;
		looking = 0;
		lower = 0;
		higher = 0
	   }
#endif
	od
}

#ifdef ERASES
/* Eraser erases the contents of a record that readers may see. */
proctype Eraser() {
	byte b;

end:	do
	:: b < BATCHES - 1 -> b++
	:: d_step { first[b] != 0 && shown[b] && newest(b) <= horizon && !erased[b] ->
		erased[b] = 1;
		printf("the contents of the record of batch %d are erased\n", b);
#ifdef ERASE_BEFORE
		i = 0;
		do
		:: i < DOCS -> before[OF(b, i)] = NOWHERE; i++
		:: else -> break
		od;
		i = 0
#endif
	   }
	od
}
#endif

#ifndef PLAIN
/* R1: readers are shown the changes that were applied, and no others. */
#define isRecorded(b, d)	(!HAS(b, d) || IN(content(b), d) == applied[OF(b, d)])
#define isOnPage(b, d)	(at(b, d) > offset && at(b, d) <= horizon)
#define isRightPage(b, d)	(!isOnPage(b, d) || isRecorded(b, d))
#endif

/* serve gives a reader the documents after offset up to horizon. */
inline serve() {
	printf("reader: page up to %d\n", horizon);
	i = 0;
	do
	:: i < DOCS ->
		if
#ifdef PAGE_FIRST
		:: found[i] > offset && found[i] <= horizon -> seen[i] = (found[i] == position[i])
#else
		:: position[i] > offset && position[i] <= horizon -> seen[i] = 1
#endif
		:: else
		fi;
		assert(position[i] == 0 || position[i] > horizon || seen[i]);	/* F1 */
		i++
	:: else -> break
	od;
	i = 0;
#ifndef PLAIN
	do
	:: i < BATCHES -> assert(first[i] == 0 || EVERY(isRightPage, i)); i++
	:: else -> break
	od;
	i = 0
#endif
}

/* Reader follows the feed: it reads the clock, and at any later moment a page. */
proctype Reader() {
end:	do
#ifdef PAGE_FIRST
	:: d_step { HORIZON > offset ->
		found[0] = position[0];
		found[1] = position[1]
	   };
	   d_step { horizon = HORIZON; serve(); offset = horizon }
#else
#ifdef AT_ONCE
	:: d_step { HORIZON > offset -> horizon = HORIZON; serve(); offset = horizon }
#else
	:: d_step { horizon == offset && HORIZON > offset -> horizon = HORIZON; printf("reader: horizon %d\n", horizon) }
	:: d_step { horizon > offset -> serve(); offset = horizon }
#endif
#endif
	od
}

#ifdef LOG
#ifdef LOG_UNBOUNDED
#define isLater(b)	0
#else
#define isLater(b)	(first[b] > upto)
#endif

/*
 * Log reads the record beyond the horizon. It reads the clock, and at any later
 * moment the batches that had been closed by then.
 */
proctype Log() {
	byte upto, flying[WRITERS];

end:	do
	:: d_step { upto == 0 ->
		upto = last;
		i = 0;
		do
		:: i < WRITERS -> flying[i] = open[i]; i++
		:: else -> break
		od;
		i = 0;
		printf("log: reads the clock at %d\n", upto)
	   }
	:: d_step { upto > 0 ->
		printf("log: page\n");
		i = 0;
		do
		:: i < BATCHES ->
			assert(first[i] == 0 || isLater(i) || flying[OWNER(i)] == first[i] || EVERY(isRecorded, i));
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WRITERS -> flying[i] = 0; i++
		:: else -> break
		od;
		i = 0;
		upto = 0
	   }
	od
}
#endif

/* Quiet checks that nothing holds readers back when nothing more can happen. */
proctype Quiet() {
end:	timeout ->
	d_step {
		i = 0;
		do
		:: i < WRITERS -> assert(open[i] == 0); i++
		:: else -> break
		od;
		i = 0;
#ifndef PLAIN
		do
		:: i < BATCHES -> assert(first[i] == 0 || EVERY(isRecorded, i)); i++	/* R1 */
		:: else -> break
		od
#endif
	};
	assert(offset == last)
}

init {
	byte n;
	atomic {
		there[0] = 1; position[0] = 1; seen[0] = 1;
		do
		:: n < WRITERS -> run Writer(n); n++
		:: else -> n = 0; break
		od;
		do
		:: n < BATCHES -> run Wire(n); run Watcher(n); n++
		:: else -> n = 0; break
		od;
		run Reader();
#ifdef LOG
		run Log();
#endif
#ifdef ERASES
		run Eraser();
#endif
		run Quiet()
	}
}
