/*
 * A model of reads while MongoDB elects a primary. README.md, "Reads through a
 * failover", describes it.
 *
 * A deposed primary does not know it yet. It goes on answering majority reads from
 * the state that it has. The feed is one document here: the change at position p is
 * the p-th acknowledged write, so one number is a state of the store. A node may
 * stand still for any time, and may learn more at any moment.
 *
 * A service reads in a causally consistent session. Its reads share a barrier, a
 * linearizable read of the clock: only a primary that a majority still follows
 * answers it. A read waits for a barrier that is sent after the read began. A node
 * then answers the read once it has reached the time of the barrier.
 *
 * A new primary may show less than a majority has, until it has caught up. With
 * CAUGHT_UP it has, so that only a deposed primary is behind.
 *
 * Each of these definitions leaves one part out: NO_BARRIER, MAJORITY, JOIN_RUNNING,
 * NO_TIME, NO_SESSION.
 */
#ifndef WRITES
#define WRITES		2	/* acknowledged changes */
#endif
#ifndef ELECTIONS
#define ELECTIONS	2
#endif
#define NODES		2
#define SERVICES	2
#define READERS		3
#define ASKS(r)		((r) % SERVICES)	/* the service that a reader asks */
#define MAX(a, b)	((a) > (b) -> (a) : (b))

/* The store. */
byte written;		/* newest change that a majority has */
byte primary;		/* the node that a majority follows */
byte elections;
bit led[NODES];		/* the node has been primary, and may think that it still is */
byte has[NODES];	/* newest change that a node shows in majority reads */

/* The services. */
byte session[SERVICES];	/* newest change that its session has seen */
bit running[SERVICES];	/* a barrier was sent and is not answered */

/* The readers. */
#define IDLE	0
#define WAITS	1	/* for a barrier */
#define JOINED	2	/* waits for the answer of the running barrier */
#define READS	3
#define PAGES	4	/* has read the clock, and reads the page next */
byte state[READERS];
byte least[READERS];	/* newest change that any client knew of when the read began */
byte after[READERS];	/* a node must have this to answer */
byte horizon[READERS];	/* by the clock that was read */

byte known;		/* newest change that any client was told of */
byte i;			/* used within a step only, 0 between steps */

#ifdef NO_SESSION
#define answers(n, r)	(led[n] && has[n] >= after[r])
#else
#define answers(n, r)	(led[n] && has[n] >= after[r] && has[n] >= session[ASKS(r)])
#endif

/* observe notes in the session of reader r's service that node n has answered. */
inline observe(n, r) {
	session[ASKS(r)] = MAX(session[ASKS(r)], has[n])
}

/* tell ends a read, which has shown a change to its client. */
inline tell(r, change) {
	assert(change >= least[r]);	/* F4 */
	known = MAX(known, change);
	state[r] = IDLE;
	least[r] = 0;
	after[r] = 0;
	horizon[r] = 0
}

inline asset(n, r) {
	printf("node %d answers reader %d: the asset at change %d\n", n, r, has[n]);
	observe(n, r);
	tell(r, has[n])
}

inline clock(n, r) {
	printf("node %d answers reader %d: the clock at change %d\n", n, r, has[n]);
	observe(n, r);
	horizon[r] = has[n];
	state[r] = PAGES
}

inline page(n, r) {
	printf("node %d answers reader %d: the page up to change %d\n", n, r, horizon[r]);
	observe(n, r);
	assert(has[n] >= horizon[r]);	/* F1 */
	tell(r, horizon[r])
}

/* Reader reads an asset or a page, again and again. */
proctype Reader(byte r) {
end:	do
	:: d_step { state[r] == IDLE ->
		printf("reader %d asks service %d; clients know of change %d\n", r, ASKS(r), known);
		least[r] = known;
#if defined(NO_BARRIER)
		state[r] = READS
#elif defined(JOIN_RUNNING)
		state[r] = (running[ASKS(r)] -> JOINED : WAITS)
#else
		state[r] = WAITS
#endif
	   }
	:: d_step { state[r] == READS && answers(0, r) -> asset(0, r) }
	:: d_step { state[r] == READS && answers(1, r) -> asset(1, r) }
	:: d_step { state[r] == READS && answers(0, r) -> clock(0, r) }
	:: d_step { state[r] == READS && answers(1, r) -> clock(1, r) }
	:: d_step { state[r] == PAGES && answers(0, r) -> page(0, r) }
	:: d_step { state[r] == PAGES && answers(1, r) -> page(1, r) }
	od
}

/* change moves the readers of service s from one state to another. */
inline change(s, from, to, time) {
	i = 0;
	do
	:: i < READERS ->
		if
		:: ASKS(i) == s && state[i] == from -> state[i] = to; after[i] = time
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

#define waits(r, s)	(ASKS(r) == (s) && state[r] == WAITS)

/* Barrier is the barriers of one service: one at a time, for all who wait. */
proctype Barrier(byte s) {
	byte time;

end:	do
	:: d_step { waits(0, s) || waits(1, s) || waits(2, s) ->
		printf("service %d sends a barrier\n", s);
		change(s, WAITS, JOINED, 0);
		running[s] = 1
	   };
#ifdef MAJORITY
	   if
	   :: time = has[0]
	   :: time = has[1]
	   fi;
#else
	   d_step {
		has[primary] = written;
		time = written;
		printf("node %d answers the barrier of service %d: change %d\n", primary, s, time)
	   };
#endif
	   d_step {
		printf("the answer reaches service %d\n", s);
#ifdef NO_TIME
		time = 0;
#endif
		session[s] = MAX(session[s], time);
		change(s, JOINED, READS, time);
		running[s] = 0;
		time = 0
	   }
	od
}

/* Store is the nodes of MongoDB. */
proctype Store() {
end:	do
	:: d_step { written < WRITES ->
		written++;
		has[primary] = written;
		known = written;
		printf("node %d writes change %d, which its caller is told\n", primary, written)
	   }
	:: d_step { elections < ELECTIONS ->
		elections++;
		primary = 1 - primary;
		led[primary] = 1;
#ifdef CAUGHT_UP
		has[primary] = written;
#endif
		printf("node %d is elected; node %d does not know it\n", primary, 1 - primary)
	   }
	:: d_step { has[0] < written -> has[0]++ }
	:: d_step { has[1] < written -> has[1]++ }
	od
}

init {
	byte n;
	atomic {
		led[0] = 1;
		do
		:: n < READERS -> run Reader(n); n++
		:: else -> n = 0; break
		od;
		do
		:: n < SERVICES -> run Barrier(n); n++
		:: else -> n = 0; break
		od;
		run Store()
	}
}
