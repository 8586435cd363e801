/*
 * A model of walks: readings of the whole list, page by page, while documents are
 * changed and published. README.md, "Walks of the whole list", describes it.
 *
 * feed.pml shows that nothing is written at or below a horizon. So a batch is one
 * document here, an Open always has a new position, and the record is left out. A
 * stalled writer takes its next step late. A fence refuses its write and closes its
 * batch, so that is a step of the writer. A caller may get no answer.
 *
 * Document 0 was published long ago, document 1 is a draft. Both are changed, and the
 * draft is published. A set of places has bit p for position p.
 *
 * Each of these definitions leaves one part out: NO_FORMER, ONE_PLACE, TRIM_NEWEST,
 * MOVED_FIRST, DOWNWARDS, OLD_CLOCK, NO_AWAIT, AWAIT_OWN.
 */
#ifndef CHANGES
#define CHANGES	2	/* of both writers together */
#endif
#define DOCS	2
#define WRITERS	2
#define BIT(p)	(1 << (p))
#define IN(set, p)	(((set) >> (p)) & 1)

/* The clock. */
byte last = 2;			/* newest position given out */
byte open[WRITERS];		/* position of the batch in flight; 0: none */
#define until(w, h)	(open[w] != 0 && open[w] <= (h) -> open[w] - 1 : (h))
#define HORIZON	until(1, until(0, last))

/* The documents. */
byte position[DOCS];
byte trail[DOCS];		/* set of its places, the position included */
byte listed[DOCS];		/* the places of its trail where the list has it */
#define isListed(d)	IN(listed[d], position[d])

/* The writers. */
byte on[WRITERS];		/* the document that the batch changes */
bit guard[WRITERS];		/* it has the revision that was read */

byte acked;			/* set of documents that callers know to be published */
byte changes;
byte i, set;			/* used within a step only, 0 between steps */

/* lowest finds the lowest place of a set. */
inline lowest(places, p) {
	p = 0;
	do
	:: !IN(places, p) -> p++
	:: else -> break
	od
}

/* newest finds the newest place up to a horizon; none: NOWHERE. */
#define NOWHERE	255
inline newest(places, upto, p) {
	p = upto;
	do
	:: p != NOWHERE && !IN(places, p) -> p--	/* 255 follows 0 */
	:: else -> break
	od
}

/* raise raises the revision of a document. */
inline raise(d) {
	i = 0;
	do
	:: i < WRITERS ->
		if
		:: on[i] == d -> guard[i] = 0
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* since is the places that a trail keeps once a horizon is known. */
inline since(d, upto) {
	newest(trail[d], upto, i);
	set = 0;
	if
	:: i != NOWHERE -> set = BIT(i) - 1		/* the places before it */
	:: else
	fi;
	trail[d] = trail[d] & ~set;
	listed[d] = listed[d] & ~set;
	i = 0;
	set = 0
}

/* write takes document d to the position of the batch. */
inline write(w, d, horizon, publish) {
#if defined(ONE_PLACE)
	since(d, position[d]);
#elif defined(TRIM_NEWEST)
	since(d, last);
#else
	since(d, horizon);
#endif
	if
	:: publish || isListed(d) -> listed[d] = listed[d] | BIT(open[w])
	:: else
	fi;
	position[d] = open[w];
	trail[d] = trail[d] | BIT(open[w]);
	raise(d);
	printf("writer %d: document %d at %d, published: %d, trail %d\n", w, d, position[d], isListed(d), trail[d])
}

/* enter finds where a document entered the list; 0: a horizon has passed that. */
inline enter(d, at) {
	lowest(trail[d], i);
	at = 0;
	if
	:: isListed(d) && !IN(listed[d], i) -> lowest(listed[d], at)
	:: else
	fi;
	i = 0
}

/* Writer is one process. Callers read a document, and change and publish it. */
proctype Writer(byte w) {
	byte d;
	byte horizon;		/* newest that the process has read */
	byte entered;		/* where the document entered the list */
	bit publish;
	bit heard;		/* the caller hears of a document that the list has */

end:	do
	:: d_step { horizon != HORIZON -> horizon = HORIZON }
	:: atomic { isListed(1) && !IN(acked, 1) ->	/* a caller repeats the publication, which changes nothing */
		d = 1;
		d_step { enter(d, entered) }
	   };
	   goto await
	:: atomic { changes < CHANGES ->
		changes++;
		if
		:: d = 0
		:: d = 1
		fi;
		on[w] = d;
		guard[w] = 1;
		publish = 0;
		if
		:: !isListed(d) -> publish = 1
		:: skip
		fi;
		last++;
		open[w] = last;
		printf("writer %d opens %d for document %d\n", w, last, d)
	   };
	   atomic {
		if
		:: guard[w] ->
			d_step {
				write(w, d, horizon, publish);
				enter(d, entered);
				heard = isListed(d)
			}
		:: d_step { raise(d); printf("writer %d is refused, or fenced\n", w) }
		fi
	   };
	   atomic {
		open[w] = 0;
		printf("batch of writer %d is closed\n", w);
		if
		:: heard
		:: else -> goto over
		fi
	   };
await:	   atomic {
		if
#if defined(NO_AWAIT)
		:: acked = acked | BIT(d);
#elif defined(AWAIT_OWN)
		:: !publish || HORIZON >= entered -> acked = acked | BIT(d);
#else
		:: HORIZON >= entered -> acked = acked | BIT(d);
#endif
			printf("a caller of writer %d hears that document %d is published\n", w, d)
		:: skip				/* the caller gets no answer */
		fi
	   };
over:	   atomic { d = 0; on[w] = 0; guard[w] = 0; entered = 0; publish = 0; heard = 0 }	/* saves states */
	od
}

/* Walker reads the list from the start to an empty page, again and again. A page has one entry. */
proctype Walker() {
	byte horizon, offset, upto;
	byte q;			/* the query has read up to this position */
	byte entry, at;		/* the first entry of the page, and its place; 0: none */
	byte want, met;		/* sets of documents */
	byte d, p;		/* used within a step only */
	bit again, later;

end:	do
	:: d_step { offset == 0 && met == 0 -> want = acked; printf("a walk begins\n") };
page:	   atomic {
		horizon = HORIZON;
		upto = horizon;
		printf("walk: page from %d up to %d\n", offset, horizon)
	   };
#ifdef MOVED_FIRST
	   goto moved;
#endif
find:	   q = offset;
	   do
	   :: d_step { q < horizon && upto == horizon ->
		q++;
		d = 0;
		do
		:: d < DOCS ->
			if
			:: position[d] == q && isListed(d) ->
				upto = q;	/* the page is full */
				if
				:: at == 0 || q < at -> entry = d; at = q
				:: else
				fi
			:: else
			fi;
			d++
		:: else -> d = 0; break
		od
	      }
	   :: else -> break
	   od;
#ifdef MOVED_FIRST
	   goto merge;
#endif
#ifdef NO_FORMER
	   goto merge;
#endif
moved:
#ifdef DOWNWARDS
	   q = last + 1;
	   do
	   :: d_step { q > horizon + 1 ->
		q--;
#else
	   q = horizon;
	   do
	   :: d_step { q < last ->
		q++;
#endif
		d = 0;
		do
		:: d < DOCS ->
			if
			:: position[d] == q && isListed(d) ->
				newest(trail[d], horizon, p);
				if
				:: p == NOWHERE ->
					later = HORIZON > horizon;
					assert(later);	/* the next page knows the place */
					later = 0;
#ifndef OLD_CLOCK
					again = 1
#endif
				:: p != NOWHERE && IN(listed[d], p) && p > offset && p <= upto && (at == 0 || p < at) ->
					entry = d;
					at = p
				:: else
				fi
			:: else
			fi;
			d++
		:: else -> d = 0; p = 0; break
		od
	      }
	   :: else -> break
	   od;
#ifdef MOVED_FIRST
	   if
	   :: again
	   :: else -> goto find
	   fi;
#endif
merge:	   atomic {
		q = 0;
		upto = 0;
		if
		:: again -> again = 0; entry = 0; at = 0; goto page
		:: !again && at != 0 ->
			met = met | BIT(entry);
			offset = at;
			printf("walk: document %d at %d\n", entry, at);
			entry = 0;
			at = 0;
			goto page
		:: else ->
			assert((want & ~met) == 0);	/* it has each document that was known to be published */
			printf("walk: the end\n");
			met = 0;
			offset = 0;
			want = 0;
			horizon = 0
		fi
	   }
	od
}

init {
	atomic {
		position[0] = 1; trail[0] = BIT(1); listed[0] = BIT(1); acked = BIT(0);
		position[1] = 2; trail[1] = BIT(0) | BIT(2);
		run Writer(0); run Writer(1);
		run Walker()
	}
}
