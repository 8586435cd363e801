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
 * Each of these definitions leaves one part out: NAIVE, PAGE_FIRST, NO_RAISE,
 * NO_VOID, NO_OWN_FENCE, NO_MEMORY, OPEN_UNGUARDED, WRITE_UNGUARDED, CLOSE_UNGUARDED.
 * PROMPT checks a property that the protocol does not have.
 */
#ifndef WRITERS
#define WRITERS	2
#endif
#ifndef RUN
#define RUN	2	/* batches of the first writer; the others write one each */
#endif
#ifndef DOCS
#define DOCS	2	/* 2 or 3; the first exists at the start, the others do not */
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

#define BATCHES		(RUN + WRITERS - 1)
#define OWNER(b)	((b) < RUN -> 0 : (b) - RUN + 1)
#define START(w)	((w) == 0 -> 0 : RUN + (w) - 1)
#define END(w)		(RUN + (w))
#define OF(b, d)	((b) * DOCS + (d))
#define HAS(b, d)	((docs[b] >> (d)) & 1)
#if DOCS == 2
#define EVERY(P, b)	(P(b, 0) && P(b, 1))
#else
#define EVERY(P, b)	(P(b, 0) && P(b, 1) && P(b, 2))
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
bit trail[BATCHES * DOCS];	/* the document's trail has the batch's position */

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

/* findPosition sets sum to the position that batch b gives document d. */
inline findPosition(b, d) {
	sum = first[b];
	i = 0;
	do
	:: i < d -> sum = sum + HAS(b, i); i++
	:: else -> break
	od;
	i = 0
}

/* HORIZON is the position up to which nothing more can appear. */
#define before(w, h)	(open[w] != 0 && open[w] <= (h) -> open[w] - 1 : (h))
#ifdef NAIVE
#define HORIZON	last
#elif WRITERS == 2
#define HORIZON	before(1, before(0, last))
#else
#define HORIZON	before(2, before(1, before(0, last)))
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
	findPosition(b, DOCS);
	last = sum - 1;
	sum = 0;
	open[OWNER(b)] = first[b];	/* this closes the writer's previous batch */
	opened[b]++;
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
#define writeHolds(b, d)	(!trail[OF(b, d)])
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
	findPosition(b, d);
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
	trail[OF(b, d)] = 1
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
#if BATCHES == 2
#define guarded(d)	(guard[OF(0, d)] || guard[OF(1, d)])
#elif BATCHES == 3
#define guarded(d)	(guard[OF(0, d)] || guard[OF(1, d)] || guard[OF(2, d)])
#else
#define guarded(d)	(guard[OF(0, d)] || guard[OF(1, d)] || guard[OF(2, d)] || guard[OF(3, d)])
#endif
#define isOver(b, d)	(!guard[OF(b, d)])
#define isYes(b, d)	(!HAS(b, d) || said[OF(b, d)] == YES)
#define isDone(b, d)	(!HAS(b, d) || trail[OF(b, d)] || !writeHolds(b, d))

/* The steps of a writer. */

/* look finds out by the trails which writes have landed. */
inline look(b) {
	printf("writer %d has looked what landed of batch %d\n", OWNER(b), b);
	i = 0;
	do
	:: i < DOCS ->
		if
		:: HAS(b, i) -> said[OF(b, i)] = (trail[OF(b, i)] -> YES : NO)
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
	sum = first[b];
	do
	:: i < DOCS ->
		assert(said[OF(b, i)] != YES || trail[OF(b, i)] && position[i] >= sum);
		sum = sum + HAS(b, i);
		i++
	:: else -> break
	od;
	i = 0;
	sum = 0;
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
		:: !guard[OF(b, i)] -> trail[OF(b, i)] = 0; said[OF(b, i)] = 0
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0;
	assert(first[b] <= last);
	first[b] = 0;
	closing[b] = 0;
	if
	:: EVERY(isOver, b) -> writing[b] = 0
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
			:: d > 0 -> d--; guard[OF(b, d)] = HAS(b, d)
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
			:: printf("writer %d crashes\n", w) -> goto dead
			fi;
			known = last;
			if
			:: written -> d_step { acknowledge(b - 1) }
			:: else
			fi;
			printf("writer %d sends Write of batch %d\n", w, b);
			writing[b] = 1
		};
		atomic {
			if
			:: EVERY(isDone, b)		/* an answer came */
			:: EVERY(isFenced, b)		/* an error came: fence, then look */
#ifdef NO_OWN_FENCE
			:: true				/* an error came: look */
#endif
			:: printf("writer %d crashes\n", w) -> goto dead
			fi;
			d_step { look(b) };
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
	:: d_step { closing[b] && closeHolds(b) -> applyClose(b) }
	:: d_step { arrives(b, 0) -> applyWrite(b, 0) }
	:: d_step { arrives(b, 1) -> applyWrite(b, 1) }
#if DOCS > 2
	:: d_step { arrives(b, 2) -> applyWrite(b, 2) }
#endif
	od
}

/*
 * Watcher is the watchers of all processes. Each has seen the batch on the clock
 * for longer than its lease, which may be any time, and acts at any later moment.
 * It also stands for the writer's own fence, which has the same effect.
 */
proctype Watcher(byte b) {
end:	do
	:: d_step { fences(b, 0) -> applyFence(b, 0) }
	:: d_step { fences(b, 1) -> applyFence(b, 1) }
#if DOCS > 2
	:: d_step { fences(b, 2) -> applyFence(b, 2) }
#endif
	:: d_step { opened[b] > 0 && EVERY(isFenced, b) && closeHolds(b) -> applyClose(b) }
	od
}

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
	i = 0
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

/* Quiet checks that nothing holds readers back when nothing more can happen. */
proctype Quiet() {
end:	timeout ->
	d_step {
		i = 0;
		do
		:: i < WRITERS -> assert(open[i] == 0); i++
		:: else -> break
		od
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
		run Quiet()
	}
}
