package k8s

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	finishing = 15 * time.Second // how long a program may take to finish the requests in progress (shared/httpserver)
	closing   = 5 * time.Second  // how long a program may then take to close its stores and send its telemetry
	// Memory of the child process in which filesvc draws pictures; GOMEMLIMIT does not count it.
	drawing = 256 << 20
)

// rules are rules for a deployment's manifests that no Kubernetes server checks. The function `plant` puts a fault
// into the stack, and the rule must find that fault.
var rules = []struct {
	name  string
	check func(stack, *appsv1.Deployment) error
	plant func(stack)
}{
	{"each setting is given once", func(s stack, d *appsv1.Deployment) error {
		_, err := s.environment(d)
		return err
	}, func(s stack) { named[*corev1.ConfigMap](s, "assetsvc").Data["ASSETSVC_ADDR"] = ":8081" }},
	{"an end has time, and a new pod comes first", checkEnd, func(s stack) {
		*podOf(s, "assetsvc").TerminationGracePeriodSeconds = 20
	}},
	{"GOMEMLIMIT is below the limit of the container", checkMemory, func(s stack) {
		delete(podOf(s, "assetsvc").Containers[0].Resources.Limits, corev1.ResourceMemory)
	}},
	{"maintenance leaves one pod", checkNumber, func(s stack) {
		*named[*autoscalingv2.HorizontalPodAutoscaler](s, "assetsvc").Spec.MinReplicas = 1
	}},
	{"maintenance takes one pod", checkNumber, func(s stack) {
		named[*policyv1.PodDisruptionBudget](s, "assetsvc").Spec.MaxUnavailable.IntVal = 2
	}},
	{"the rate limits count every gateway", checkNumber, func(s stack) {
		named[*autoscalingv2.HorizontalPodAutoscaler](s, "gateway").Spec.MaxReplicas = 15
	}},
	{"the name of a service stands for each pod", checkService, func(s stack) {
		named[*corev1.Service](s, "assetsvc").Spec.PublishNotReadyAddresses = false
	}},
	{"a volume of files is shared", checkClaims, func(s stack) {
		named[*corev1.PersistentVolumeClaim](s, "files").Spec.AccessModes[0] = corev1.ReadWriteOnce
	}},
	{"a volume is where the program keeps its files", checkClaims, func(s stack) {
		podOf(s, "filesvc").Containers[0].VolumeMounts[1].MountPath = "/elsewhere"
	}},
}

func podOf(s stack, name string) *corev1.PodSpec {
	return &named[*appsv1.Deployment](s, name).Spec.Template.Spec
}

func TestDeploymentsKeepTheRules(t *testing.T) {
	for _, dir := range withServices {
		s := stackOf(t, dir)
		for _, d := range every[*appsv1.Deployment](s) {
			for _, r := range rules {
				if err := r.check(s, d); err != nil {
					t.Errorf("%s: %s: %s: %v", dir, d.Name, r.name, err)
				}
			}
		}
	}
}

func TestEachRuleFindsAPlantedFault(t *testing.T) {
	for _, r := range rules {
		s := stackOf(t, withFiles)
		r.plant(s)
		var found []error
		for _, d := range every[*appsv1.Deployment](s) {
			found = append(found, r.check(s, d))
		}
		if errors.Join(found...) == nil {
			t.Errorf("%s: got no fault, want the one that was planted", r.name)
		}
	}
}

func checkEnd(s stack, d *appsv1.Deployment) error {
	delay, err := time.ParseDuration(s.setting(d, "DRAIN_DELAY"))
	if err != nil || delay < 3*time.Second { // callers notice the drain late, as they ask once a second
		return fmt.Errorf("got the drain delay %s, %v; want 3s or more", delay, err)
	}
	needs := delay + finishing + closing
	if hook := containerOf(d).Lifecycle; hook != nil {
		needs += time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
	} else if d.Name == "gateway" {
		return errors.New("an Ingress has no time to learn that the pod ends")
	}
	if grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds; time.Duration(*grace)*time.Second < needs {
		return fmt.Errorf("got %d s until the kill, want %s", *grace, needs)
	}
	if roll := d.Spec.Strategy.RollingUpdate; roll.MaxUnavailable.IntValue() != 0 || roll.MaxSurge.IntValue() != 1 {
		return errors.New("an update ends old pods before new ones are ready")
	}
	return nil
}

func checkMemory(s stack, d *appsv1.Deployment) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	soft, err := resource.ParseQuantity(strings.TrimSuffix(env["GOMEMLIMIT"], "B"))
	if err != nil {
		return err
	}
	has := containerOf(d).Resources
	own := has.Limits.Memory().Value()
	if has.Requests.Memory().Value() != own || has.Requests.Cpu().IsZero() { // autoscalers need a request of CPU
		return errors.New("the requests lack CPU, or their memory is not the limit")
	}
	if d.Name == "filesvc" {
		own -= drawing
	}
	if soft.Value() > own*9/10 || soft.Value() < own/2 {
		return fmt.Errorf("got GOMEMLIMIT %s, want it between 50 and 90 %% of %d MiB", &soft, own>>20)
	}
	return nil
}

func checkNumber(s stack, d *appsv1.Deployment) error {
	least, most := d.Spec.Replicas, int32(0)
	if scaler := named[*autoscalingv2.HorizontalPodAutoscaler](s, d.Name); scaler != nil {
		if least != nil {
			return errors.New("the deployment and the autoscaler both set the number of pods")
		}
		least, most = scaler.Spec.MinReplicas, scaler.Spec.MaxReplicas
	}
	if d.Name != "searchsvc" && (least == nil || *least < 2) {
		return errors.New("one pod can be alone")
	}
	budget := named[*policyv1.PodDisruptionBudget](s, d.Name)
	if budget == nil || !selects(budget.Spec.Selector, d) || budget.Spec.MaxUnavailable.IntValue() != 1 {
		return errors.New("it has no budget of one pod")
	}
	if d.Name != "gateway" {
		return nil
	}
	// An update starts one more gateway, and meanwhile another one may still be shutting down.
	if counted, err := strconv.Atoi(s.setting(d, "LIMITS_GATEWAYS")); err != nil || counted < int(most)+2 {
		return fmt.Errorf("got limits for %d gateways, %v; want %d", counted, err, most+2)
	}
	return nil
}

// checkService checks that callers can ask every single pod whether it is ready.
func checkService(s stack, d *appsv1.Deployment) error {
	if d.Name == "gateway" || d.Name == "searchsvc" {
		return nil // no service asks the pods of these two deployments whether they are ready
	}
	if v := named[*corev1.Service](s, d.Name); v.Spec.ClusterIP != corev1.ClusterIPNone || !v.Spec.PublishNotReadyAddresses {
		return errors.New("its name in DNS does not list each pod")
	}
	return nil
}

// checkClaims checks that all pods share each volume on a disk, and that the volume is mounted where the program
// expects it.
func checkClaims(s stack, d *appsv1.Deployment) error {
	folder := map[string]string{"assetsvc": s.setting(d, "SNAPSHOT_DIR"), "filesvc": s.setting(d, "DATA")}[d.Name]
	var mounted string
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := named[*corev1.PersistentVolumeClaim](s, v.PersistentVolumeClaim.ClaimName)
		if claim == nil || claim.Namespace != d.Namespace || !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
			return fmt.Errorf("volume %s has no claim with ReadWriteMany", v.Name)
		}
		for _, m := range containerOf(d).VolumeMounts {
			if m.Name == v.Name && !m.ReadOnly {
				mounted += m.MountPath
			}
		}
	}
	if mounted != folder {
		return fmt.Errorf("got a volume at %q, want it at %q", mounted, folder)
	}
	return nil
}
