package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/deploy/test/rig/replicaset"
	"asset-registry/shared/randtest"
	"asset-registry/shared/sleep"
)

// drill breaks members of a replica set, one fault after another.
type drill struct {
	set  *replicaset.Set
	done map[string]int // numbers of faults; the keys are their names
}

// between is the least pause between two faults.
const between = 3 * time.Second

// run causes faults in random order until ctx is done. Each kind comes once before a kind comes again. When run
// returns, all members run, and no failpoint is on.
func (d *drill) run(ctx context.Context) error {
	faults := []struct {
		name  string
		cause func(context.Context) error
	}{
		{"kill", d.kill}, {"freeze", d.freeze}, {"step down", d.stepDown}, {"two away", d.twoAway},
		{"refused commands", d.refuse}, {"stalled replication", d.stall}, {"rollback", d.rollBack},
	}
	left := slices.Clone(faults)
	for sleep.For(ctx, between+randtest.N(between)) {
		if len(left) == 0 {
			left = slices.Clone(faults)
		}
		n := randtest.IntN(len(left))
		if err := left[n].cause(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("%s: %w", left[n].name, err)
		}
		d.done[left[n].name]++
		left = slices.Delete(left, n, n+1)
	}
	return nil
}

// any returns the members in random order.
func (d *drill) any() []*replicaset.Member {
	all := slices.Clone(d.set.Members)
	for i := range all {
		j := i + randtest.IntN(len(all)-i)
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// primary returns the primary and the other members.
func (d *drill) primary(ctx context.Context) (first *replicaset.Member, others []*replicaset.Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if first, err = d.set.Primary(ctx); err != nil {
		return nil, nil, err
	}
	return first, slices.DeleteFunc(d.any(), func(m *replicaset.Member) bool { return m == first }), nil
}

func (d *drill) kill(ctx context.Context) error { return away(ctx, d.any()[:1], true) }

func (d *drill) freeze(ctx context.Context) error { return away(ctx, d.any()[:1], false) }

func (d *drill) twoAway(ctx context.Context) error {
	return away(ctx, d.any()[:2], randtest.IntN(2) == 0)
}

// away kills or freezes some members. They are away for one to six seconds.
func away(ctx context.Context, members []*replicaset.Member, kill bool) error {
	for _, m := range members {
		end := m.Freeze
		if kill {
			end = m.Kill
		}
		if err := end(); err != nil {
			return err
		}
	}
	time.Sleep(time.Second + randtest.N(5*time.Second))
	return each(members, func(m *replicaset.Member) error {
		if kill {
			return m.Restart(ctx)
		}
		return m.Thaw()
	})
}

// each calls a function for all members at the same time, and joins the errors.
func each(members []*replicaset.Member, do func(*replicaset.Member) error) error {
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { errs[i] = do(m) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *drill) stepDown(ctx context.Context) error {
	primary, _, err := d.primary(ctx)
	if err != nil {
		return err
	}
	return primary.Run(ctx, bson.D{{Key: "replSetStepDown", Value: 10}, {Key: "secondaryCatchUpPeriodSecs", Value: 5},
		{Key: "force", Value: true}}, nil)
}

// failpoint sets the mode of a failpoint of a member.
func failpoint(ctx context.Context, m *replicaset.Member, name string, mode any, data bson.D) error {
	return m.Run(ctx, bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: mode},
		{Key: "data", Value: data}}, nil)
}

// refuse makes the primary refuse some commands of clients, break the connection, delay the command, or do a write
// and say that a majority does not have it.
func (d *drill) refuse(ctx context.Context) error {
	primary, _, err := d.primary(ctx)
	if err != nil {
		return err
	}
	const notPrimary, shutdown, interrupted, unreachable = 10107, 91, 11602, 6
	codes := []int{notPrimary, shutdown, interrupted, unreachable}
	code := codes[randtest.IntN(len(codes))]
	how := []bson.E{{Key: "errorCode", Value: code}, {Key: "closeConnection", Value: true},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: code}, {Key: "errmsg", Value: "drill"}}},
		{Key: "blockTimeMS", Value: 3000}}[randtest.IntN(4)]
	commands := bson.A{"insert", "update", "findAndModify", "delete", "find", "aggregate"}
	if how.Key == "writeConcernError" {
		commands = commands[:4]
	}
	data := bson.D{{Key: "failCommands", Value: commands},
		{Key: "blockConnection", Value: how.Key == "blockTimeMS"}, how}
	times := bson.D{{Key: "times", Value: 1 + randtest.IntN(20)}}
	if err := failpoint(ctx, primary, "failCommand", times, data); err != nil {
		return err
	}
	time.Sleep(between)
	return failpoint(ctx, primary, "failCommand", "off", bson.D{})
}

// stall lets the secondaries apply nothing for some seconds, so that no write gets a majority.
func (d *drill) stall(ctx context.Context) error {
	_, others, err := d.primary(ctx)
	if err != nil {
		return err
	}
	if err := each(others, func(m *replicaset.Member) error {
		return failpoint(ctx, m, "rsSyncApplyStop", "alwaysOn", bson.D{})
	}); err != nil {
		return err
	}
	time.Sleep(time.Second + randtest.N(4*time.Second))
	return each(others, func(m *replicaset.Member) error { return failpoint(ctx, m, "rsSyncApplyStop", "off", bson.D{}) })
}

// rollBack makes a primary take writes that no other member gets, and freezes it until the others have elected
// another one. When it thaws, it must roll these writes back.
func (d *drill) rollBack(ctx context.Context) error {
	primary, others, err := d.primary(ctx)
	if err != nil {
		return err
	}
	before, err := rollbacks(ctx, primary)
	if err != nil {
		return err
	}
	if err := each(others, func(m *replicaset.Member) error {
		return failpoint(ctx, m, "stopReplProducer", "alwaysOn", bson.D{})
	}); err != nil {
		return err
	}
	lost := bson.D{{Key: "insert", Value: "drill"}, {Key: "documents", Value: bson.A{bson.D{}}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}}
	time.Sleep(time.Second + randtest.N(2*time.Second)) // the services write, too
	if err := primary.Run(ctx, lost, nil); err != nil {
		return err
	}
	if err := primary.Freeze(); err != nil {
		return err
	}
	if err := each(others, func(m *replicaset.Member) error {
		return failpoint(ctx, m, "stopReplProducer", "off", bson.D{})
	}); err != nil {
		return err
	}
	elected := time.Now().Add(time.Minute)
	for !d.leads(ctx, others) && time.Now().Before(elected) {
		time.Sleep(between / 10)
	}
	time.Sleep(randtest.N(between))
	if err := primary.Thaw(); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(between / 10) {
		now, err := rollbacks(ctx, primary)
		if err == nil && now > before {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("got the number %d of rollbacks (%v) after %d, want more", now, err, before)
		}
	}
}

// leads reports whether one of the members is the primary.
func (d *drill) leads(ctx context.Context, members []*replicaset.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, between)
	defer cancel()
	_, err := (&replicaset.Set{Members: members}).Primary(ctx)
	return err == nil
}

// rollbacks returns the number of a member's rollbacks.
func rollbacks(ctx context.Context, m *replicaset.Member) (int, error) {
	var got struct{ RBID int }
	err := m.Run(ctx, bson.D{{Key: "replSetGetRBID", Value: 1}}, &got)
	return got.RBID, err
}
