package k8s

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// finishing is how long a program gives requests under way (shared/httpserver).
	finishing = 15 * time.Second
	// closing is for what comes after that: stores are closed, telemetry is sent.
	closing = 5 * time.Second
)

// fit reports every part of the stack that does not fit the others.
func (s *stack) fit() error {
	var faults []error
	for _, d := range s.deployments {
		for what, check := range map[string]func(*appsv1.Deployment) error{
			"its ports": s.portsFit, "its settings": s.settingsFit, "its secrets": s.secretsFit, "its account": s.accountFits,
			"its end": s.endFits, "its memory": s.memoryFits, "its spread": s.spreadFits, "its number": s.numberFits,
		} {
			if err := check(d); err != nil {
				faults = append(faults, fmt.Errorf("deployment %s: %s: %w", d.Name, what, err))
			}
		}
	}
	return errors.Join(append(faults, s.servicesFit(), s.ingressesFit(), s.policiesFit())...)
}

// environment is what the container of a deployment finds in its own.
func (s *stack) environment(d *appsv1.Deployment) (map[string]string, error) {
	found := map[string]string{}
	container := d.Spec.Template.Spec.Containers[0]
	for _, from := range container.EnvFrom {
		at := slices.IndexFunc(s.configs, func(c *corev1.ConfigMap) bool {
			return from.ConfigMapRef != nil && c.Name == from.ConfigMapRef.Name
		})
		if at < 0 {
			return nil, fmt.Errorf("there is no ConfigMap for %v", from)
		}
		for name, value := range s.configs[at].Data {
			found[name] = value
		}
	}
	for _, v := range container.Env {
		if _, twice := found[v.Name]; twice || v.ValueFrom != nil {
			return nil, fmt.Errorf("%s is not said once, and plainly", v.Name)
		}
		found[v.Name] = v.Value
	}
	return found, nil
}

// settingOf is the variable of a program's setting.
func settingOf(program, name string) string { return strings.ToUpper(program) + "_" + name }

// portsFit: the ports that are declared are those that the program is told to
// listen at, and the probes ask the public one.
func (s *stack) portsFit(d *appsv1.Deployment) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	var faults []error
	container := d.Spec.Template.Spec.Containers[0]
	told := map[string]string{}
	for port, setting := range map[string]string{"http": "ADDR", "admin": "ADMIN_ADDR", "metrics": "METRICS_ADDR"} {
		if addr := env[settingOf(d.Name, setting)]; addr != "" {
			told[port] = addr
		}
	}
	for _, p := range container.Ports {
		if addr := told[p.Name]; addr != fmt.Sprintf(":%d", p.ContainerPort) {
			faults = append(faults, fmt.Errorf("%s is %d, and the program listens at %q", p.Name, p.ContainerPort, addr))
		}
		delete(told, p.Name)
	}
	for port := range told {
		faults = append(faults, fmt.Errorf("%s is not declared", port))
	}
	for asked, probe := range map[string]*corev1.Probe{
		"/readyz": container.ReadinessProbe, "/livez": container.LivenessProbe,
	} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != asked || probe.HTTPGet.Port.String() != "http" {
			faults = append(faults, fmt.Errorf("no probe asks for %s at http", asked))
		}
	}
	return errors.Join(faults...)
}

// settingsFit: the servers that a program is to call have names, which stand
// for each of them, and whether they are ready or not.
func (s *stack) settingsFit(d *appsv1.Deployment) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	var faults []error
	for name, value := range env {
		setting := strings.TrimPrefix(name, settingOf(d.Name, ""))
		if !slices.Contains([]string{"AUTH_URL", "ASSETS_URL", "FILES_URL"}, setting) {
			continue
		}
		u, err := url.Parse(value)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		at := slices.IndexFunc(s.services, func(v *corev1.Service) bool { return v.Name == u.Hostname() })
		if at < 0 || fmt.Sprint(s.services[at].Spec.Ports[0].Port) != u.Port() {
			faults = append(faults, fmt.Errorf("%s: there is no service at %s", name, u.Host))
		} else if spec := s.services[at].Spec; spec.ClusterIP != corev1.ClusterIPNone || !spec.PublishNotReadyAddresses {
			faults = append(faults, fmt.Errorf("%s: %s does not stand for all its servers", name, u.Host))
		}
	}
	return errors.Join(faults...)
}

// secretsFit: no Secret is ours, and those that a program is told to read lie
// where it looks.
func (s *stack) secretsFit(d *appsv1.Deployment) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	var faults []error
	spec := d.Spec.Template.Spec
	var names []string
	for _, v := range spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			continue
		}
		if v.Projected == nil {
			faults = append(faults, fmt.Errorf("volume %s holds no secrets", v.Name))
			continue
		}
		for _, from := range v.Projected.Sources {
			names = append(names, from.Secret.Name)
		}
		if mode := v.Projected.DefaultMode; mode == nil || *mode&0o007 != 0 || spec.SecurityContext.FSGroup == nil {
			faults = append(faults, fmt.Errorf("volume %s may be read by anyone, or not by the program", v.Name))
		}
	}
	if want := []string{"registry-secret", d.Name + "-stores"}; !slices.Equal(names, want) {
		faults = append(faults, fmt.Errorf("it reads %v, not %v", names, want))
	}
	mount := spec.Containers[0].VolumeMounts[0]
	for setting, file := range map[string]string{"SECRET_FILE": "registry-secret", "CONFIG": d.Name + ".yaml"} {
		if got, want := env[settingOf(d.Name, setting)], path.Join(mount.MountPath, file); got != want || !mount.ReadOnly {
			faults = append(faults, fmt.Errorf("%s is %q, not %q", setting, got, want))
		}
	}
	return errors.Join(faults...)
}

// accountFits: each has an account of its own, which no token is given for.
func (s *stack) accountFits(d *appsv1.Deployment) error {
	spec := d.Spec.Template.Spec
	at := slices.IndexFunc(s.accounts, func(a *corev1.ServiceAccount) bool { return a.Name == spec.ServiceAccountName })
	if at < 0 || spec.ServiceAccountName != d.Name {
		return fmt.Errorf("%q is not its own", spec.ServiceAccountName)
	}
	for _, given := range []*bool{s.accounts[at].AutomountServiceAccountToken, spec.AutomountServiceAccountToken} {
		if given == nil || *given {
			return errors.New("a token is given for it")
		}
	}
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		return errors.New("services are variables that look like settings")
	}
	return nil
}

// endFits: nobody kills a program that finishes what it has begun.
func (s *stack) endFits(d *appsv1.Deployment) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	needs := finishing + closing
	delay, err := time.ParseDuration(env[settingOf(d.Name, "DRAIN_DELAY")])
	if err != nil {
		return err
	}
	if delay < 3*time.Second {
		return fmt.Errorf("callers that ask every second do not learn of it in %s", delay)
	}
	needs += delay
	spec := d.Spec.Template.Spec
	if life := spec.Containers[0].Lifecycle; life != nil {
		needs += time.Duration(life.PreStop.Sleep.Seconds) * time.Second
	} else if d.Name == "gateway" {
		return errors.New("who sends requests by what the cluster says has no time to be told")
	}
	if grace := spec.TerminationGracePeriodSeconds; grace == nil || time.Duration(*grace)*time.Second < needs {
		return fmt.Errorf("it needs %s", needs)
	}
	roll := d.Spec.Strategy.RollingUpdate
	if roll == nil || roll.MaxUnavailable.IntValue() != 0 || roll.MaxSurge.IntValue() != 1 {
		return errors.New("in an update, old ones end before new ones are there")
	}
	return nil
}

// drawing is the memory of the child of filesvc that draws pictures (docs/files.md, "Pictures"). GOMEMLIMIT does
// not count it.
const drawing = 256 << 20

// memoryFits: Go's own limit is below the one that kills.
func (s *stack) memoryFits(d *appsv1.Deployment) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	container := d.Spec.Template.Spec.Containers[0]
	limit := container.Resources.Limits[corev1.ResourceMemory]
	soft, err := resource.ParseQuantity(strings.TrimSuffix(env["GOMEMLIMIT"], "B"))
	if err != nil {
		return err
	}
	if requested := container.Resources.Requests[corev1.ResourceMemory]; requested.Cmp(limit) != 0 {
		return fmt.Errorf("%s is what it may use, and %s what is kept for it", &limit, &requested)
	}
	if container.Resources.Requests.Cpu().IsZero() {
		return errors.New("no CPU is kept for it, which autoscaling counts by")
	}
	own := limit.Value()
	if d.Name == "filesvc" {
		own -= drawing
	}
	if soft.Value() > own*9/10 || soft.Value() < own/2 {
		return fmt.Errorf("GOMEMLIMIT is %s of %s, of which the program itself has %d MiB", &soft, &limit, own>>20)
	}
	return nil
}

func (s *stack) spreadFits(d *appsv1.Deployment) error {
	var over []string
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		if !selects(c.LabelSelector, d) {
			return fmt.Errorf("over %s others are spread", c.TopologyKey)
		}
		over = append(over, c.TopologyKey)
	}
	if want := []string{corev1.LabelTopologyZone, corev1.LabelHostname}; !slices.Equal(over, want) {
		return fmt.Errorf("it is spread over %v, not %v", over, want)
	}
	return nil
}

// numberFits: there are two at least, one of which a cluster's maintenance
// leaves, and the autoscaler alone says how many.
func (s *stack) numberFits(d *appsv1.Deployment) error {
	if d.Spec.Replicas != nil {
		return errors.New("the deployment says one, and so does the autoscaler")
	}
	var scalers, budgets int
	for _, h := range s.scalers {
		if to := h.Spec.ScaleTargetRef; to.Name != d.Name || to.Kind != "Deployment" || to.APIVersion != "apps/v1" {
			continue
		}
		scalers++
		if h.Spec.MinReplicas == nil || *h.Spec.MinReplicas < 2 {
			return errors.New("there may be one alone")
		}
		if d.Name == "gateway" {
			if err := s.gatewaysFit(d, h.Spec.MaxReplicas); err != nil {
				return err
			}
		}
	}
	for _, b := range s.budgets {
		if selects(b.Spec.Selector, d) {
			budgets++
			if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 1 {
				return errors.New("maintenance may take more than one")
			}
		}
	}
	if scalers != 1 || budgets != 1 {
		return fmt.Errorf("it has %d autoscalers and %d disruption budgets", scalers, budgets)
	}
	return nil
}

// gatewaysFit: the rate limits hold for as many gateways as there may be, one
// that an update adds and one that is about to end with them.
func (s *stack) gatewaysFit(d *appsv1.Deployment, most int32) error {
	env, err := s.environment(d)
	if err != nil {
		return err
	}
	counted, err := strconv.Atoi(env["GATEWAY_LIMITS_GATEWAYS"])
	if err != nil {
		return err
	}
	if counted < int(most)+2 {
		return fmt.Errorf("the limits count on %d gateways, and there may be %d and two more", counted, most)
	}
	return nil
}

// selects tells whether a selector is for a deployment's pods.
func selects(selector *metav1.LabelSelector, d *appsv1.Deployment) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}

// servicesFit: each leads to ports that the pods of one deployment have, and
// none leads in from outside.
func (s *stack) servicesFit() error {
	var faults []error
	for _, v := range s.services {
		var behind []*appsv1.Deployment
		for _, d := range s.deployments {
			if selects(&metav1.LabelSelector{MatchLabels: v.Spec.Selector}, d) {
				behind = append(behind, d)
			}
		}
		if len(behind) != 1 {
			faults = append(faults, fmt.Errorf("service %s: it stands for %d deployments", v.Name, len(behind)))
			continue
		}
		if v.Spec.Type != "" && v.Spec.Type != corev1.ServiceTypeClusterIP || len(v.Spec.ExternalIPs) > 0 {
			faults = append(faults, fmt.Errorf("service %s: it can be reached from outside", v.Name))
		}
		for _, p := range v.Spec.Ports {
			if !hasPort(behind[0], p.TargetPort.String()) {
				faults = append(faults, fmt.Errorf("service %s: its pods have no port %s", v.Name, p.TargetPort.String()))
			}
			if (p.TargetPort.String() == "admin") != (v.Name == "authsvc-admin") {
				faults = append(faults, fmt.Errorf("service %s: the admin API is not apart", v.Name))
			}
		}
	}
	return errors.Join(faults...)
}

// hasPort tells whether the pods of a deployment have a port of a name or number.
func hasPort(d *appsv1.Deployment, port string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port || strconv.Itoa(int(p.ContainerPort)) == port
	})
}

// ingressesFit returns an error unless each ingress leads by HTTPS to the gateway, and names
// the paths. deploy/test/docs compares the paths with the public ones.
func (s *stack) ingressesFit() error {
	var faults []error
	for _, i := range s.ingresses {
		var secure []string
		for _, t := range i.Spec.TLS {
			secure = append(secure, t.Hosts...)
		}
		if i.Spec.DefaultBackend != nil {
			faults = append(faults, fmt.Errorf("ingress %s: it takes whatever comes", i.Name))
		}
		for _, r := range i.Spec.Rules {
			if !slices.Contains(secure, r.Host) {
				faults = append(faults, fmt.Errorf("ingress %s: %s has no certificate", i.Name, r.Host))
			}
			for _, p := range r.HTTP.Paths {
				to := p.Backend.Service
				known := slices.ContainsFunc(s.services, func(v *corev1.Service) bool {
					return v.Name == to.Name && slices.ContainsFunc(v.Spec.Ports, func(port corev1.ServicePort) bool {
						return port.Name == to.Port.Name
					})
				})
				all := p.Path == "/" && *p.PathType != networkingv1.PathTypeExact
				if to.Name != "gateway" || !known || all {
					faults = append(faults, fmt.Errorf("ingress %s: %s leads to %s", i.Name, p.Path, to.Name))
				}
			}
		}
	}
	return errors.Join(faults...)
}
