// Package rig starts real redis-servers, clusters and Sentinels, and injects faults into the network between them and
// their clients. Tests use it by package redistest, the programs robustness, interop and bench directly.
//
// [Start] runs a redis-server, which needs to be on PATH. [StartCluster] and [StartSentinel] run more of them.
//
// A [Proxy] sits between clients and a server. It reads the Redis protocol in both directions, so that it can lose the
// reply to one chosen command or hold one chosen command back, besides cutting, blocking and delaying connections.
//
//	server, err := rig.Start(rig.Options{Args: []string{"--appendonly", "yes"}})
//	proxy, err := rig.NewProxy(server.Addr(), rig.ProxyOptions{})
//	proxy.Set(func(r *rig.Rules) { r.Down.Delay = time.Millisecond }) // clients use proxy.URL()
//	defer server.Stop()
package rig
