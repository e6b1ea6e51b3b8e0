package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Device is one GPU.
type Device struct {
	Vendor, Name, Driver string
	TotalMiB, FreeMiB    int // 0 if the driver does not say, as for memory shared with the CPU
	Index                int // as the driver's tool counts, from 0
	UUID                 string
}

func (d Device) String() string {
	if d.TotalMiB == 0 {
		return fmt.Sprintf("%s %s, driver %s", d.Vendor, d.Name, d.Driver)
	}
	return fmt.Sprintf("%s %s, driver %s, %d of %d MiB free", d.Vendor, d.Name, d.Driver, d.FreeMiB, d.TotalMiB)
}

// ID is what names a device to an engine and to a lock: its UUID, or its index if it has none.
func (d Device) ID() string {
	return cmp.Or(d.UUID, strconv.Itoa(d.Index))
}

// PickGPUs chooses what a process with the environment env runs on: the devices that a variable such as
// CUDA_VISIBLE_DEVICES names, in its order, else the one with the most free memory. All that are
// named must be free. The errors say what is missing and what to do.
func PickGPUs(ctx context.Context, env []string) ([]Device, error) { return pickGPUs(ctx, run, env) }

func pickGPUs(ctx context.Context, drivers tools, env []string) ([]Device, error) {
	all, err := drivers.devices(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("no GPU: the driver lists no device: is it passed through to this machine or container?")
	}
	picked, named, err := visible(all, env)
	if err != nil {
		return nil, err
	}
	if !named {
		picked = []Device{slices.MaxFunc(all, func(a, b Device) int { return a.FreeMiB - b.FreeMiB })}
	}
	for _, d := range picked {
		if d.TotalMiB > 0 && float64(d.FreeMiB) < minFree*float64(d.TotalMiB) {
			return picked, fmt.Errorf("the GPU is busy: %s: another process holds its memory: wait for it, or choose another device or machine", d)
		}
	}
	return picked, nil
}

// tools runs the tools of the drivers: it returns the output of a program.
type tools func(ctx context.Context, name string, args ...string) ([]byte, error)

func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil && len(out) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return out, err
}

// devices lists the GPUs of the first vendor whose tool is installed.
func (t tools) devices(ctx context.Context) ([]Device, error) {
	for _, vendor := range []func(context.Context) ([]Device, error){t.nvidia, t.amd} {
		devices, err := vendor(ctx)
		if !errors.Is(err, exec.ErrNotFound) {
			return devices, err
		}
	}
	return nil, errors.New("no GPU driver: neither nvidia-smi nor rocm-smi was found: install the driver, or run on the CPU with -parity.run=cpu")
}

func (t tools) nvidia(ctx context.Context) (devices []Device, err error) {
	out, err := t(ctx, "nvidia-smi", "--query-gpu=name,driver_version,memory.total,memory.free,index,uuid",
		"--format=csv,noheader,nounits")
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) == 1 && f[0] == "" {
			continue
		}
		if len(f) != 6 {
			return nil, fmt.Errorf("nvidia-smi printed %q, want name, driver, total and free memory, index, uuid", line)
		}
		number := func(text string) (n int) {
			n, wrong := strconv.Atoi(text)
			err = errors.Join(err, wrong)
			return n
		}
		d := Device{Vendor: "NVIDIA", Name: f[0], Driver: f[1], Index: number(f[4]), UUID: f[5]}
		if !strings.HasPrefix(f[2], "[") { // "[N/A]"
			d.TotalMiB, d.FreeMiB = number(f[2]), number(f[3])
		}
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi printed %q: %w", line, err)
		}
		devices = append(devices, d)
	}
	return devices, nil
}

func (t tools) amd(ctx context.Context) ([]Device, error) {
	out, err := t(ctx, "rocm-smi", "--showproductname", "--showdriverversion", "--showuniqueid",
		"--showmeminfo", "vram", "--json")
	if err != nil {
		return nil, fmt.Errorf("rocm-smi: %w", err)
	}
	var cards map[string]map[string]string
	if err := json.Unmarshal(out, &cards); err != nil {
		return nil, fmt.Errorf("rocm-smi printed %.80q: %w", out, err)
	}
	var devices []Device
	driver := cards["system"]["Driver version"]
	for name, card := range cards {
		index, _ := strconv.Atoi(strings.TrimPrefix(name, "card"))
		total, err := strconv.Atoi(card["VRAM Total Memory (B)"])
		if err != nil {
			continue // "system" is not a card
		}
		used, err := strconv.Atoi(card["VRAM Total Used Memory (B)"])
		if err != nil {
			return nil, fmt.Errorf("rocm-smi: %s: used memory: %w", name, err)
		}
		devices = append(devices, Device{Vendor: "AMD", Name: cmp.Or(card["Card Series"], card["Card series"]),
			Driver:   driver,
			TotalMiB: total >> 20, FreeMiB: (total - used) >> 20, Index: index, UUID: rocmUUID(card["Unique ID"])})
	}
	slices.SortFunc(devices, func(a, b Device) int { return cmp.Compare(a.Index, b.Index) })
	return devices, nil
}

// rocmUUID makes rocm-smi's "0x1b2c…" what ROCR_VISIBLE_DEVICES takes; a card without an id has "N/A".
func rocmUUID(id string) string {
	if hex, ok := strings.CutPrefix(id, "0x"); ok {
		return "GPU-" + hex
	}
	return ""
}

// encodings lists the encodings of Modular MAX 26.7, by device.
var encodings = map[string][]string{
	"cpu": {"float32", "q4_k", "q4_0", "q6_k"},
	"gpu": {"float32", "float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fnx2", "float6_e2m3fn", "gptq"},
}

// Supports returns an error if MAX does not have an encoding on a device. The encoding "" is the
// engine's own choice.
func Supports(device, encoding string) error {
	if encoding == "" || slices.Contains(encodings[device], encoding) {
		return nil
	}
	return fmt.Errorf("MAX has no encoding %q on the %s, it has %s",
		encoding, device, strings.Join(encodings[device], ", "))
}

// visibleKeys are the variables by which a process sees only some devices, by vendor. Of the first
// group the first that is set counts, then that of the second, whose numbers count what the first
// left: ROCm's runtime hides devices from HIP, which hides some of them again.
var visibleKeys = map[string][][]string{
	"NVIDIA": {{"CUDA_VISIBLE_DEVICES"}},
	"AMD":    {{"ROCR_VISIBLE_DEVICES"}, {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}},
}

// environOf returns env with the variable by which an engine sees these devices of one vendor alone,
// in place of those that said so before. Devices go by UUID: CUDA's numbers need not be those of
// nvidia-smi.
func environOf(devices []Device, env []string) []string {
	keys := visibleKeys[devices[0].Vendor]
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(keys, func(group []string) bool { return slices.Contains(group, key) })
	})
	ids := make([]string, len(devices))
	for i, d := range devices {
		ids[i] = d.ID()
	}
	return append(env, keys[0][0]+"="+strings.Join(ids, ","))
}

// visible returns the devices that env lets a process see, in its order. named is false if env says
// nothing about that.
func visible(all []Device, env []string) (seen []Device, named bool, err error) {
	seen = all
	for _, group := range visibleKeys[all[0].Vendor] {
		for _, key := range group {
			value, set := lookup(env, key)
			if !set {
				continue
			}
			named = true
			if seen, err = choose(seen, value); err != nil {
				return nil, true, fmt.Errorf("no GPU: %s is %q: %w", key, value, err)
			}
			break
		}
	}
	return seen, named, nil
}

// choose returns the devices of a list of numbers and UUIDs; the start of a UUID will do. A MIG
// instance is a device that nvidia-smi does not list in a table.
func choose(all []Device, list string) (chosen []Device, err error) {
	for id := range strings.SplitSeq(list, ",") {
		id = strings.TrimSpace(id)
		if strings.HasPrefix(id, "MIG-") {
			chosen = append(chosen, Device{Vendor: all[0].Vendor, Name: "MIG instance", Driver: all[0].Driver, UUID: id})
			continue
		}
		i, err := strconv.Atoi(id)
		if err != nil {
			i = only(all, id)
		}
		if i < 0 || i >= len(all) {
			return nil, fmt.Errorf("%q is none of the %d devices that the driver lists: "+
				"name one by its number or its whole UUID, or leave the variable out", id, len(all))
		}
		if !slices.Contains(chosen, all[i]) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}

// only returns the index of the one device whose UUID starts with id, else -1.
func only(all []Device, id string) int {
	starts := func(d Device) bool { return id != "" && strings.HasPrefix(d.UUID, id) }
	i := slices.IndexFunc(all, starts)
	if i >= 0 && slices.ContainsFunc(all[i+1:], starts) {
		return -1
	}
	return i
}
