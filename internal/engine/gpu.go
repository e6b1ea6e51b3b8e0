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
func PickGPUs(ctx context.Context, tools Tools, env []string) ([]Device, error) {
	all, err := tools.Devices(ctx)
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

// System asks the tools of the drivers: nvidia-smi, then rocm-smi.
func System() Tools { return run }

// Tools runs the tools of the drivers: it returns the output of a program.
type Tools func(ctx context.Context, name string, args ...string) ([]byte, error)

func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil && len(out) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return out, err
}

// Devices lists the GPUs of the first vendor whose tool is installed.
func (t Tools) Devices(ctx context.Context) ([]Device, error) {
	for _, vendor := range []func(context.Context) ([]Device, error){t.nvidia, t.amd} {
		devices, err := vendor(ctx)
		if !errors.Is(err, exec.ErrNotFound) {
			return devices, err
		}
	}
	return nil, errors.New("no GPU driver: neither nvidia-smi nor rocm-smi was found: install the driver, or run on the CPU with -parity.run=cpu")
}

func (t Tools) nvidia(ctx context.Context) (devices []Device, err error) {
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
		d := Device{Vendor: "NVIDIA", Name: f[0], Driver: f[1], UUID: f[5]}
		var err error
		if d.Index, err = strconv.Atoi(f[4]); err != nil {
			return nil, fmt.Errorf("nvidia-smi printed %q: %w", line, err)
		}
		if !strings.HasPrefix(f[2], "[") { // "[N/A]"
			total, err1 := strconv.Atoi(f[2])
			free, err2 := strconv.Atoi(f[3])
			if err := errors.Join(err1, err2); err != nil {
				return nil, fmt.Errorf("nvidia-smi printed %q: %w", line, err)
			}
			d.TotalMiB, d.FreeMiB = total, free
		}
		devices = append(devices, d)
	}
	return devices, nil
}

func (t Tools) amd(ctx context.Context) ([]Device, error) {
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
