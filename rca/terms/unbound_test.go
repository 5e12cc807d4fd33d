package terms

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// claim is one of the pod that waits, with the volume that it is bound to.
func claim(w *rcatest.World, name, volume, zone string) *corev1.PersistentVolumeClaim {
	p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	if volume != "" {
		p.Status.Phase = corev1.ClaimBound
		w.PVs = append(w.PVs, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: strings.Split(zone, "|")}}}}}}}})
	}
	w.PVCs = append(w.PVCs, p)
	w.Wait.Spec.Volumes = append(w.Wait.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	return p
}

// byPeople has a claim be of a class whose volumes people make.
func byPeople(w *rcatest.World, p *corev1.PersistentVolumeClaim) {
	class := "local"
	p.Spec.StorageClassName = &class
	w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: noProvisioner})
}

// Why a claim has no volume is told where objects, or who binds volumes, say it; two volumes that
// no node can have together are told before what the plugins say of a node.
func TestWhyAVolumeIsNotThere(t *testing.T) {
	class := func(w *rcatest.World, name string, byDefault string) {
		w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{defaultClass: byDefault}}})
	}
	named := func(p *corev1.PersistentVolumeClaim, class string) { p.Spec.StorageClassName = &class }
	const none, plain = "PersistentVolumeClaim data has no volume: it names no StorageClass, and none is the default", "its volume cannot be had there: refused"
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"no class at all":         {func(w *rcatest.World) { claim(w, "data", "", "") }, none},
		"none is the default":     {func(w *rcatest.World) { class(w, "slow", "false"); claim(w, "data", "", "") }, none},
		"one is the default":      {func(w *rcatest.World) { class(w, "slow", "true"); claim(w, "data", "", "") }, plain},
		"it wants none":           {func(w *rcatest.World) { class(w, "slow", "true"); named(claim(w, "data", "", ""), "") }, none},
		"its class is there":      {func(w *rcatest.World) { class(w, "fast", "false"); named(claim(w, "data", "", ""), "fast") }, plain},
		"its class is not there":  {func(w *rcatest.World) { named(claim(w, "data", "", ""), "fast") }, "PersistentVolumeClaim data has no volume: its StorageClass fast does not exist"},
		"people make its volumes": {func(w *rcatest.World) { byPeople(w, claim(w, "data", "", "")) }, "PersistentVolumeClaim data has no volume: its StorageClass local makes none (kubernetes.io/no-provisioner), and no PersistentVolume of it is free"},
		"and nobody read those": {func(w *rcatest.World) {
			byPeople(w, claim(w, "data", "", ""))
			w.Unread["PersistentVolume"] = "forbidden"
		}, "PersistentVolumeClaim data has no volume: its StorageClass local makes none (kubernetes.io/no-provisioner)"},
		"and one is taken": {func(w *rcatest.World) {
			byPeople(w, claim(w, "data", "", ""))
			w.PVs = append(w.PVs, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{StorageClassName: "local", ClaimRef: &corev1.ObjectReference{Name: "x"}}})
		}, "PersistentVolumeClaim data has no volume: its StorageClass local makes none (kubernetes.io/no-provisioner), and no PersistentVolume of it is free"},
		"and one is free": {func(w *rcatest.World) {
			byPeople(w, claim(w, "data", "", ""))
			w.PVs = append(w.PVs, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{StorageClassName: "local"}})
		}, plain},
		"classes were not read": {func(w *rcatest.World) { claim(w, "data", "", ""); w.Unread["StorageClass"] = "forbidden" }, plain},
		"but it is told": {func(w *rcatest.World) {
			claim(w, "data", "", "")
			w.Unread["StorageClass"] = "forbidden"
			ofClaim(w, "FailedBinding", "no persistent volumes available for this claim and no storage class is set")
		}, none},
		"its provisioner says it": {func(w *rcatest.World) {
			class(w, "fast", "false")
			named(claim(w, "data", "", ""), "fast")
			ofClaim(w, "ProvisioningFailed", "no quota")
		}, "PersistentVolumeClaim data has no volume: no quota"},
		"it waits for its pod": {func(w *rcatest.World) {
			class(w, "fast", "false")
			named(claim(w, "data", "", ""), "fast")
			ofClaim(w, "WaitForFirstConsumer", "waits")
		}, plain},
		"volumes of two zones":        {func(w *rcatest.World) { claim(w, "data", "v1", "a"); claim(w, "more", "v2", "b|c") }, "its volumes exclude each other, so no node at all can have it: PersistentVolumeClaim data in a, PersistentVolumeClaim more in b|c"},
		"volumes of zones that share": {func(w *rcatest.World) { claim(w, "data", "v1", "a|b"); claim(w, "more", "v2", "b|c") }, plain},
		"one volume, claimed once":    {func(w *rcatest.World) { claim(w, "data", "v1", "a") }, plain},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n"})
			tc.fill(w)
			s, _ := subject(t, w)
			if f := VolumesOf(s).Tell(s.Cluster.Nodes["n"], "refused"); f.Says != tc.want {
				t.Errorf("%s\nwant\n%s", f.Says, tc.want)
			}
		})
	}
}

// The first claim that a pod names and that is not in its namespace is missing, where claims were read.
func TestAClaimIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*rcatest.World)
		want string
	}{
		"both are there":       {func(*rcatest.World) {}, ""},
		"the second is gone":   {func(w *rcatest.World) { w.PVCs = w.PVCs[:1] }, "more"},
		"none is there":        {func(w *rcatest.World) { w.PVCs = nil }, "data"},
		"one is of others":     {func(w *rcatest.World) { w.PVCs[1].Namespace = "b" }, "more"},
		"claims were not read": {func(w *rcatest.World) { w.PVCs, w.Unread["PersistentVolumeClaim"] = nil, "forbidden" }, ""},
	} {
		w := rcatest.NewWorld()
		w.Wait.Spec.Volumes = []corev1.Volume{{Name: "scratch"}}
		claim(w, "data", "", "")
		claim(w, "more", "", "")
		tc.edit(w)
		s, _ := subject(t, w)
		if got := Missing(s.Cluster, s.Pod); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// ofClaim has somebody speak of the claim data.
func ofClaim(w *rcatest.World, reason, message string) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "data"}, Reason: reason, Message: message})
}

// The first that wants to be near its own kind is let onto any node that has the label; and that a
// label is on no node is said.
func TestTheFirstOfItsKind(t *testing.T) {
	for name, tc := range map[string]struct {
		near string
		key  string
		want string // what node n refuses
	}{
		"near its own kind":            {"w", zone, ""},
		"near others":                  {"gone", zone, ": it has to be near app=gone (" + zone + ")"},
		"over a label that nobody has": {"w", "rack", ": it has to be near app=w (rack); no node has label rack"},
	} {
		w := rcatest.NewWorld()
		zones(w)
		w.Wait.Labels = map[string]string{"app": "w"}
		w.Wait.Spec.Affinity = together(beside(tc.near, func(t *corev1.PodAffinityTerm) { t.TopologyKey = tc.key }))
		s, by := subject(t, w)
		if f := CompanyOf(s, by).Tell(s.Cluster.Nodes["n"], "refused"); f.Says != "pod (anti-)affinity rules leave it out"+tc.want {
			t.Errorf("%s: %s", name, f.Says)
		}
	}
}

// The class that makes volumes where the pod goes is of the same driver, by whichever name.
func TestClassesOfAClaim(t *testing.T) {
	waits, once := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for name, tc := range map[string]struct {
		provisioner string
		mode        *storagev1.VolumeBindingMode
		want        string
	}{
		"of one driver":         {"disk.csi.azure.com", &once, "own slow"},
		"by its name of before": {"kubernetes.io/azure-disk", &once, "own slow"},
		"of a name like it":     {"pd.csi.storage.gke.io", &once, "own own-later"},
		"of another driver":     {"nfs", &once, "own "},
		"its own waits":         {"disk.csi.azure.com", &waits, " "},
		"it says nothing":       {"disk.csi.azure.com", nil, " "},
	} {
		w := rcatest.NewWorld()
		p := claim(w, "data", "v", "a")
		own := "own"
		p.Spec.StorageClassName = &own
		for class, made := range map[string]*storagev1.StorageClass{"own": {Provisioner: tc.provisioner, VolumeBindingMode: tc.mode}, "slow": {Provisioner: "disk.csi.azure.com", VolumeBindingMode: &waits}, "swift": {Provisioner: "disk.csi.azure.com", VolumeBindingMode: &waits},
			"early": {Provisioner: "pd.csi.storage.gke.io", VolumeBindingMode: &waits}, "own-later": {Provisioner: "pd.csi.storage.gke.io", VolumeBindingMode: &waits}} {
			made.Name = class
			w.StorageClasses = append(w.StorageClasses, made)
		}
		s, _ := subject(t, w)
		if immediate, later := ClassesOf(s.Cluster, p.Namespace, "data"); immediate+" "+later != tc.want {
			t.Errorf("%s: %q, %q", name, immediate, later)
		}
	}
	s, _ := subject(t, rcatest.NewWorld())
	if own, _ := ClassesOf(s.Cluster, "a", "none"); own != "" {
		t.Error(own)
	}
}

// A claim that leaves its class open takes the default by itself; which class could be that is named where there is one.
func TestTheDefaultForAClaim(t *testing.T) {
	const by = " storageclass.kubernetes.io/is-default-class=true  # PersistentVolumeClaim data, which names none, takes the default by itself"
	const install = "; first install what makes volumes here and brings a class (the CSI driver of your cloud or storage, or local-path-provisioner for one machine's disk): none is there"
	for name, tc := range map[string]struct {
		classes []string
		edit    func(*rcatest.World, *corev1.PersistentVolumeClaim)
		want    string
	}{
		"none is there":     {nil, nil, "kubectl annotate storageclasses NAME" + by + install},
		"people make those": {[]string{noProvisioner}, nil, "kubectl annotate storageclasses NAME" + by + install},
		"they are not read": {nil, func(w *rcatest.World, _ *corev1.PersistentVolumeClaim) { w.Unread["StorageClass"] = "x" }, "kubectl annotate storageclasses NAME" + by},
		"one is there":      {[]string{noProvisioner, "ebs.csi.aws.com"}, nil, "kubectl annotate storageclasses c1" + by},
		"two are there":     {[]string{"a", "b"}, nil, "kubectl annotate storageclasses NAME" + by},
		"it wants none":     {[]string{"a"}, func(_ *rcatest.World, p *corev1.PersistentVolumeClaim) { p.Spec.StorageClassName = new("") }, ""},
	} {
		w := rcatest.NewWorld()
		for i, provisioner := range tc.classes {
			w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}, Provisioner: provisioner})
		}
		p := claim(w, "data", "", "")
		if tc.edit != nil {
			tc.edit(w, p)
		}
		s, _ := subject(t, w)
		if got := DefaultFor(s.Cluster, p); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
