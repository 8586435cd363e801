/*
 * A model of gateways that answer readings from memory while several asset
 * services write. README.md, "Answers from memory", describes it.
 *
 * One gateway and one asset stand for all. Gateways never talk to each other, so
 * another gateway only makes writers wait. A change of another asset has no effect.
 * Writers may be removed and may register again, any number of times.
 *
 * Versions need no numbers: a copy of the asset is NEW until the next change lands,
 * then OLD. A reading takes its copy when it begins: a later copy could only be newer.
 * The model has no readings that the gateway may not keep.
 *
 * Time: a lease may lapse at the gateway at any moment. A writer believes in a lease
 * until it has lapsed at the gateway, and until no grant on the way could revive it.
 * The wait of a new writer ends once each grant from a renewal before its
 * registration has lapsed or was replaced.
 *
 * A message may come late or never. Messages of one writer keep their order. A dead
 * writer is one that takes no more steps, a stalled one continues later.
 *
 * Each variant is a definition that leaves one part out. README.md lists them.
 * USED finds a gateway that answers from memory again after the first writer was
 * removed and another has joined.
 */
#define WRITERS	2
#ifndef QUEUE
#define QUEUE	2	/* messages on the way from one writer; more are lost */
#endif
#define IN(set, w)	(((set) >> (w)) & 1)
#define WITH(set, w)	((set) | (1 << (w)))
#define LESS(set, w)	((set) & ~(1 << (w)))

/* The clock document, and the writes on their way to the store. */
byte registered = 1;	/* set of the registered writers */
bit open[WRITERS];	/* the writer's batch is on the clock, and no fence stops its write */
bit writing[WRITERS];	/* the write of the batch was sent, and has not landed */

/* The writers. */
#define OUT		0	/* never registered */
#define WAITS		1	/* registered, and waits for one lease */
#define IDLE		2
#define ANNOUNCED	3
#define WRITES		4
byte phase[WRITERS];
byte names[WRITERS];	/* set of the registered writers, by the last renewal; 0: no grants */
byte early[WRITERS];	/* set of the writers that have registered since that renewal */
bit believes[WRITERS];	/* the gateway may hold a lease, by the writer's clock */
bit awaits[WRITERS];	/* the gateway was told of the batch, and has not confirmed it */

/* The messages from each writer to the gateway, the oldest first. */
#define NONE		0
#define ANNOUNCE	1
#define ANNOUNCED_BEFORE	2	/* of a batch that is over: its confirmation counts for nothing */
#define DONE		3
#define EXPIRED		4	/* a grant that lapsed on the way */
#define GRANT		32	/* + names, early * 4, changing * 16 */
#define grant(w)	(GRANT + names[w] + early[w] * 4 + changing(w) * 16)
byte queue[WRITERS * QUEUE];
#define head(w)		queue[(w) * QUEUE]
#define isFull(w)	(queue[(w) * QUEUE + QUEUE - 1] != NONE)
#define isGrant(w, n)	(queue[(w) * QUEUE + (n)] >= GRANT)
#if QUEUE == 2
#define hasGrant(w)	(isGrant(w, 0) || isGrant(w, 1))
#else
#define hasGrant(w)	(isGrant(w, 0) || isGrant(w, 1) || isGrant(w, 2))
#endif

/* The gateway. */
bit held[WRITERS];	/* it holds an unexpired lease of the writer */
byte named[WRITERS];	/* the names in that grant */
byte older[WRITERS];	/* set of the writers that have registered since the grant's renewal */
bit marked[WRITERS];	/* the writer is changing the asset */
#define NOTHING	0
#define NEW	1
#define OLD	2
byte memory;
byte reading;		/* the reading under way that the gateway may keep */

byte i, m;		/* used within a step only, 0 between steps */
#ifdef OLD_READS
bit changed;		/* a change has landed */
#endif

#ifdef GRANT_SILENT
#define changing(w)	0
#else
#define changing(w)	(phase[w] >= ANNOUNCED)
#endif

#define holding		(held[0] + held[1] * 2)
#ifdef SOME_LEASES
#define covered		(holding != 0)
#else
#define covered		(holding != 0 && ((named[0] | named[1]) & ~holding) == 0)
#endif

/* send puts a message of writer w on its way. */
inline send(w, message) {
	i = 0;
	do
	:: i < QUEUE && queue[w * QUEUE + i] != NONE -> i++
	:: else -> break
	od;
	if
	:: i < QUEUE -> queue[w * QUEUE + i] = message
	:: else				/* it is lost */
	fi;
	i = 0
}

/* shift removes the oldest message of writer w. */
inline shift(w) {
	i = 1;
	do
	:: i < QUEUE -> queue[w * QUEUE + i - 1] = queue[w * QUEUE + i]; i++
	:: else -> break
	od;
	queue[w * QUEUE + QUEUE - 1] = NONE;
	i = 0
}

/* loseAll loses all messages of writer w. */
inline loseAll(w) {
	i = 0;
	do
	:: i < QUEUE -> queue[w * QUEUE + i] = NONE; i++
	:: else -> break
	od;
	i = 0
}

/* outdate makes each announcement on the way one of an earlier batch. */
inline outdate(w) {
	i = 0;
	do
	:: i < QUEUE ->
		if
#ifdef CONFIRM_ANY
		:: 0
#else
		:: queue[w * QUEUE + i] == ANNOUNCE -> queue[w * QUEUE + i] = ANNOUNCED_BEFORE
#endif
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* register adds writer w. Each grant and renewal so far is from before. */
inline register(w) {
	printf("writer %d registers\n", w);
	outdate(w);
	registered = WITH(registered, w);
	phase[w] = WAITS;
	believes[w] = 0;
	awaits[w] = 0;
	i = 0;
	do
	:: i < WRITERS ->
		early[i] = (names[i] != 0 -> WITH(early[i], w) : 0);
		older[i] = (held[i] -> WITH(older[i], w) : 0);
		i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < WRITERS * QUEUE ->
		m = queue[i];
		queue[i] = (m >= GRANT -> m | (4 << w) : m);
		i++
	:: else -> break
	od;
	i = 0;
	m = 0;
	names[w] = registered;
	early[w] = 0
}

#ifdef JOIN_AT_ONCE
#define hasWaited(w)	1
#else
#define hasWaited(w)	(!IN(older[0], w) && !IN(older[1], w))
#endif

/* begin ends the wait of writer w. All grants from renewals before its registration have lapsed. */
inline begin(w) {
	printf("writer %d has waited for one lease\n", w);
	phase[w] = IDLE;
#ifndef JOIN_AT_ONCE
	do
	:: i < WRITERS ->
#ifndef OLD_RENEWAL
		if
		:: IN(early[i], w) -> names[i] = 0; early[i] = 0
		:: else
		fi;
#else
		early[i] = LESS(early[i], w);
#endif
		i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < WRITERS * QUEUE ->
		m = queue[i];
		queue[i] = (m >= GRANT && IN(m, w + 2) -> EXPIRED : m);
		i++
	:: else -> break
	od;
	i = 0;
	m = 0
#endif
}

inline renew(w, set) {
	names[w] = set;
	early[w] = 0;
	printf("writer %d renews: the set %d is registered\n", w, set)
}

inline announce(w) {
	printf("writer %d announces a batch\n", w);
	phase[w] = ANNOUNCED;
	outdate(w);
	if
	:: believes[w] -> awaits[w] = 1; send(w, ANNOUNCE)
	:: else
	fi
}

/* finish ends the batch of writer w, whose write has landed or never lands. */
inline finish(w) {
	printf("writer %d says that its batch is done\n", w);
	phase[w] = IDLE;
	awaits[w] = 0;
#ifndef DONE_EARLY
	open[w] = 0;
#endif
	if
	:: believes[w] -> send(w, DONE)
	:: else
	fi
}

#ifdef OPEN_UNREGISTERED
#define opens(w)	1
#else
#define opens(w)	IN(registered, w)
#endif
#ifdef NO_CONFIRM
#define mayWrite(w)	1
#else
#define mayWrite(w)	(!awaits[w])
#endif
#ifdef DONE_EARLY
#define isOver(w)	1
#else
#define isOver(w)	(!writing[w])
#endif
#ifdef NO_MARGIN
#define hasLapsed(w)	1
#else
#define hasLapsed(w)	(!held[w])
#endif

/* Writer is the asset service w. */
proctype Writer(byte w) {
end:	do
	:: d_step { !IN(registered, w) -> register(w) }
	:: d_step { phase[w] == WAITS && hasWaited(w) -> begin(w) }
	:: d_step { IN(registered, w) && (names[w] != registered || early[w] != 0) -> renew(w, registered) }
#ifdef RENEW_BY_READ
	:: d_step { names[w] != 1 -> renew(w, 1) }	/* as it was at the start */
#endif
	:: d_step { names[w] != 0 && !awaits[w] && !hasGrant(w) && !isFull(w) ->
		printf("writer %d grants a lease and names the set %d\n", w, names[w]);
		believes[w] = 1;
		send(w, grant(w))
	   }
	:: d_step { believes[w] && hasLapsed(w) ->
		printf("writer %d: the lease has lapsed\n", w);
		believes[w] = 0;
		awaits[w] = 0;
#ifndef NO_MARGIN
		loseAll(w)
#endif
	   }
	:: d_step { phase[w] == IDLE -> announce(w) }
	:: d_step { phase[w] == ANNOUNCED && !open[w] && opens(w) -> open[w] = 1; printf("writer %d opens the batch\n", w) }
	:: d_step { phase[w] == ANNOUNCED && !open[w] -> finish(w) }	/* Open was refused, or the batch was fenced */
	:: d_step { phase[w] == ANNOUNCED && open[w] && mayWrite(w) ->
		printf("writer %d sends its write\n", w);
		writing[w] = 1;
		phase[w] = WRITES
	   }
	:: d_step { phase[w] == WRITES && isOver(w) -> finish(w) }
	od
}

#ifdef REMOVE_UNFENCED
#define mayRemove(w)	1
#else
#define mayRemove(w)	(!open[w])
#endif

/* Store applies the write of writer w, and what others do to a writer that they take for dead. */
proctype Store(byte w) {
end:	do
	:: d_step { writing[w] && open[w] ->
		printf("store: the write of writer %d lands\n", w);
		writing[w] = 0;
		memory = (memory == NEW -> OLD : memory);
		reading = (reading == NEW -> OLD : reading);
#ifdef OLD_READS
		changed = 1
#endif
	   }
	:: d_step { open[w] ->
		printf("store: the batch of writer %d is fenced and closed\n", w);
		open[w] = 0;
		writing[w] = 0
	   }
	:: d_step { IN(registered, w) && mayRemove(w) ->
		printf("store: writer %d is removed\n", w);
		registered = LESS(registered, w)
	   }
	od
}

/* drop forgets the answer, and the reading under way. */
inline drop() {
	memory = NOTHING;
#ifndef KEEP_UNDERWAY
	reading = NOTHING
#endif
}

/* take handles the oldest message m of writer w. */
inline take(w) {
	if
	:: m >= GRANT ->
		printf("gateway: a lease of writer %d\n", w);
		held[w] = 1;
		named[w] = m & 3;
		older[w] = (m >> 2) & 3;
		marked[w] = (m >> 4) & 1;
		if
		:: marked[w] -> drop()
		:: else
		fi;
		if
		:: covered
		:: else ->		/* it names a writer without a lease */
#ifndef NO_CLEAR_NAMED
			memory = NOTHING;
			reading = NOTHING
#endif
		fi
	:: m == ANNOUNCE || m == ANNOUNCED_BEFORE ->
		printf("gateway: writer %d changes the asset\n", w);
		if
		:: held[w] -> marked[w] = 1; drop()
		:: else
		fi;
		if
		:: m == ANNOUNCE -> awaits[w] = 0
		:: else
		fi
	:: m == DONE ->
		printf("gateway: writer %d is done\n", w);
		marked[w] = 0;
#ifdef ONE_MARK
		marked[1 - w] = 0
#endif
	:: m == EXPIRED
	fi;
	m = 0
}

inline lapse(w) {
	printf("gateway: the lease of writer %d lapses\n", w);
	held[w] = 0;
	named[w] = 0;
	older[w] = 0;
	marked[w] = 0;
#ifdef CLEAR_MARKS
	marked[1 - w] = 0;
#endif
	if
	:: covered
	:: else ->
#ifndef NO_CLEAR
		memory = NOTHING;
#endif
#ifndef KEEP_LAPSED
		reading = NOTHING
#endif
	fi
}

#ifdef KEEP_CHANGING
#define isChanging	0
#else
#define isChanging	(marked[0] || marked[1])
#endif
#ifdef KEEP_EARLY
#define mayKeep		(!isChanging)
#else
#define mayKeep		(covered && !isChanging)
#endif

/* Gateway takes the messages of writer w. */
proctype Gateway(byte w) {
end:	do
	:: d_step { head(w) != NONE -> m = head(w); shift(w); take(w) }
	:: d_step { held[w] -> lapse(w) }
	:: d_step { head(w) != NONE -> printf("gateway: a message of writer %d is lost\n", w); shift(w) }
#ifdef OVERTAKE
	:: d_step { queue[w * QUEUE + 1] != NONE ->
		m = queue[w * QUEUE + 1];
		queue[w * QUEUE + 1] = head(w);
		shift(w);
		take(w)
	   }
#endif
	od
}

/* Client reads the asset through the gateway. */
proctype Client() {
end:	do
	:: d_step { reading == NOTHING && mayKeep -> reading = NEW; printf("gateway: a reading begins\n") }
#ifdef OLD_READS
	:: d_step { reading == NOTHING && mayKeep && changed -> reading = OLD; printf("gateway: a reading of an old state begins\n") }
#endif
	:: d_step { reading != NOTHING ->
		printf("gateway: the reading ends\n");
		memory = (covered -> reading : memory);
		reading = NOTHING
	   }
	:: d_step { memory != NOTHING && covered ->
		printf("gateway: answers from memory\n");
		assert(memory == NEW);		/* A1 */
#ifdef USED
		assert(holding != 2 || named[1] != 2)
#endif
	   }
	od
}

init {
	byte n;
	atomic {
		phase[0] = IDLE;
		names[0] = registered;
		do
		:: n < WRITERS -> run Writer(n); run Store(n); run Gateway(n); n++
		:: else -> n = 0; break
		od;
		run Client()
	}
}
