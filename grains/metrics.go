package grains

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// counts are the counts of a Directory. The meter reads them when it collects, so counting costs nothing else.
type counts struct{ running, starts, terms, unregistered, refused, late atomic.Int64 }

// instruments are the metrics of grains, as in docs/operate.md.
var instruments = []struct {
	name, unit, text string
	upDown           bool
	of               func(*counts) *atomic.Int64
}{
	{"running", "{actor}", "Grains that run.", true, func(c *counts) *atomic.Int64 { return &c.running }},
	{"starts", "{actor}", "Grains that started.", false, func(c *counts) *atomic.Int64 { return &c.starts }},
	{"terms", "{term}", "Terms of this process as a member.", false, func(c *counts) *atomic.Int64 { return &c.terms }},
	{"unregistered", "{call}", "Registrations that were refused or failed.",
		false, func(c *counts) *atomic.Int64 { return &c.unregistered }},
	{"refused", "{message}", "Messages that grains refused.", false, func(c *counts) *atomic.Int64 { return &c.refused }},
	{"late", "{actor}", "Grains that stopped after the lease of their member: others may have run alongside them.",
		false, func(c *counts) *atomic.Int64 { return &c.late }},
}

// observe lets the meter read the counts until stop is called. An instrument that the meter cannot make is left out.
func (c *counts) observe(meter metric.Meter) (stop func() error) {
	values := map[metric.Int64Observable]*atomic.Int64{}
	var all []metric.Observable
	for _, one := range instruments {
		var i metric.Int64Observable
		var err error
		name, unit, text := "lockkeeper.grains."+one.name, metric.WithUnit(one.unit), metric.WithDescription(one.text)
		if one.upDown {
			i, err = meter.Int64ObservableUpDownCounter(name, unit, text)
		} else {
			i, err = meter.Int64ObservableCounter(name, unit, text)
		}
		if err == nil {
			values[i], all = one.of(c), append(all, i)
		}
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, value := range values {
			o.ObserveInt64(i, value.Load())
		}
		return nil
	}, all...)
	if err != nil {
		return func() error { return nil }
	}
	return registration.Unregister
}
