package k8s

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const (
	finishing = 15 * time.Second // how long a program may take to finish the requests in progress (shared/httpserver)
	closing   = 5 * time.Second  // how long a program may then take to close its stores and send its telemetry
	drawing   = 256 << 20        // memory of the child process in which filesvc draws pictures, beside GOMEMLIMIT
)

// rules are rules for a deployment's manifests that no Kubernetes server checks.
var rules = []func(stack, *appsv1.Deployment) error{
	checkSettings, checkStandard, checkEnd, checkMemory, checkLogs, checkNumber, checkService, checkClaims,
}

// check returns the first fault that a rule finds in a deployment.
func (s stack) check() error {
	for _, d := range every[*appsv1.Deployment](s) {
		for _, rule := range rules {
			if err := rule(s, d); err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
		}
	}
	return nil
}

// checkSettings checks that the deployment's program knows all its environment variables: it would ignore a variable
// with a wrong name without an error. A test of the documents compares docs/configuration.md with the programs.
func checkSettings(s stack, d *appsv1.Deployment) error {
	documented, readErr := os.ReadFile("../../../docs/configuration.md")
	env, err := s.environment(d)
	for name := range env {
		isOwn := strings.HasPrefix(name, strings.ToUpper(d.Name)) && strings.Contains(string(documented), "`"+name+"`")
		if !isOwn && !slices.Contains(ofLibraries, name) {
			return fmt.Errorf("its program does not know %s", name)
		}
	}
	return errors.Join(readErr, err)
}

// ofLibraries are variables of Go, of OpenTelemetry and of libraries for S3.
var ofLibraries = []string{
	"GOMEMLIMIT", "TMPDIR", "AWS_SHARED_CREDENTIALS_FILE",
	"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
}

func checkStandard(s stack, d *appsv1.Deployment) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	pod := &d.Spec.Template
	strictest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(strictest, &pod.ObjectMeta, &pod.Spec))
	fixed := containerOf(d).SecurityContext.ReadOnlyRootFilesystem
	switch {
	case named[*corev1.Namespace](s, d.Namespace).Labels[api.EnforceLevelLabel] != string(strictest.Level):
		return errors.New("its namespace does not enforce the strictest standard for pods")
	case !result.Allowed:
		return errors.New(result.ForbiddenReason() + ": " + result.ForbiddenDetail())
	case fixed == nil || !*fixed:
		return errors.New("it can write to its image")
	}
	return nil
}

func checkEnd(s stack, d *appsv1.Deployment) error {
	delay, err := time.ParseDuration(s.setting(d, "DRAIN_DELAY"))
	if err != nil || delay < 3*time.Second { // callers notice the drain late, as they ask once a second
		return fmt.Errorf("got the drain delay %s, %v; want 3s or more", delay, err)
	}
	needs := delay + finishing + closing
	if hook := containerOf(d).Lifecycle; hook != nil && hook.PreStop != nil {
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

// checkLogs checks that a pod has a bound for its logs, above what its directories may take of the same storage.
func checkLogs(_ stack, d *appsv1.Deployment) error {
	most := containerOf(d).Resources.Limits.StorageEphemeral().DeepCopy()
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
			most.Sub(*v.EmptyDir.SizeLimit)
		}
	}
	if most.Value() < 256<<20 || most.Value() > 1<<30 { // five files of 10 MiB, as kubelets keep them, and more
		return fmt.Errorf("got %s of ephemeral storage for logs, want between 256 MiB and 1 GiB", &most)
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
	if least == nil || *least < 2 {
		return errors.New("one pod can be alone")
	}
	budget := named[*policyv1.PodDisruptionBudget](s, d.Name)
	if budget == nil || budget.Spec.MaxUnavailable.IntValue() != 1 ||
		!reflect.DeepEqual(budget.Spec.Selector, d.Spec.Selector) {
		return errors.New("it has no budget of one pod")
	}
	// An update starts one more gateway, and meanwhile another one may still be shutting down.
	counted, err := strconv.Atoi(s.setting(d, "LIMITS_GATEWAYS"))
	if d.Name == "gateway" && (err != nil || counted < int(most)+2) {
		return fmt.Errorf("got limits for %d gateways, %v; want %d", counted, err, most+2)
	}
	return nil
}

// checkService checks that callers can ask every single pod whether it is ready.
func checkService(s stack, d *appsv1.Deployment) error {
	service := named[*corev1.Service](s, d.Name).Spec
	if d.Name != "gateway" && (service.ClusterIP != corev1.ClusterIPNone || !service.PublishNotReadyAddresses) {
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
		if claim == nil || claim.Namespace != d.Namespace || len(claim.Spec.AccessModes) != 1 ||
			claim.Spec.AccessModes[0] != corev1.ReadWriteMany {
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
