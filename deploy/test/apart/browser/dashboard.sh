#!/usr/bin/env bash
# Draws the dashboard "requests" as a PNG, from what the real services tell a real Prometheus
# in 12 minutes of mixed load: dashboard.sh BIN > docs/pictures/dashboard.png. In the eighth
# minute the asset service is killed for 40 s. Grafana's components draw the panels from the
# dashboard's JSON; no Grafana runs. BIN has the services. It needs Linux, Node, Chromium,
# prometheus and pngquant.
set -euo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")"
here=$PWD observability=$PWD/../../../observability
version=$(jq -r '.dependencies["@grafana/ui"]' dashboard/package.json)
grep -q "grafana/grafana:$version$" ../../../../docker-compose.yml ||
	{ echo "docker-compose.yml has another Grafana than $version" >&2; exit 1; }
modules=$(../../clients/npm.sh dashboard)
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"

# Each process has an address of its own, so the ports are as in docker-compose.yml.
auth=127.8.1.1 assets=127.8.2.1 gateways='127.8.3.1 127.8.3.2' prometheus=127.8.4.1:9090
printf 'dashboard%.0s' {1..8} > secret
chmod 600 secret
service() { # NAME ADDRESS PORT FLAG...
	"$bin/$1" --addr "$2:$3" --metrics-addr "$2:9464" --secret-file secret --log-level error "${@:4}" &
}
assetsvc() {
	service assetsvc $assets 8081 --store file:assets.db --auth-url http://$auth:8082
	killed=$!
}
service authsvc $auth 8082 --store file:tokens.db --sandbox
assetsvc
for gateway in $gateways; do
	service gateway $gateway 8080 --auth-url http://$auth:8082 --assets-url http://$assets:8081
done

# The repository's configuration, with these addresses in place of DNS names.
sed -E "/job_name: (otelcol|searchsvc)/,+1d; s/localhost:9090/$prometheus/
	s/dns_sd_configs: \[\{names: \[(\w+)\].*/file_sd_configs: [{files: [\1.json]}]/" \
	"$observability/prometheus.yaml" > prometheus.yaml
ln -s "$observability/rules" rules
for job in "gateway $gateways" "assetsvc $assets" "authsvc $auth"; do
	# shellcheck disable=SC2086 # a list
	jq -n '[{targets: ($ARGS.positional | map(. + ":9464"))}]' --args ${job#* } > "${job%% *}.json"
done
prometheus --config.file=prometheus.yaml --storage.tsdb.path=data --web.listen-address=$prometheus \
	--log.level=warn >&2 &
until curl -fs "http://$prometheus/-/ready" > ready && curl -fs http://127.8.3.1:8080/readyz > ready; do sleep 0.2; done

from=$(($(date +%s) + 60)) # the first minute has no rates
# shellcheck disable=SC2046,SC2086 # a list
node "$here/dashboard/load.mjs" 720 $(printf 'http://%s:8080 ' $gateways) >&2 &
load=$!
sleep 420
kill -KILL $killed
sleep 40
assetsvc
wait $load
to=$(date +%s)

NODE_PATH=$modules "$modules/.bin/esbuild" "$here/dashboard/page.jsx" --bundle --minify --jsx=automatic --outfile=page.js \
	--alias:dashboard="$observability/grafana/dashboards/services.json" '--define:process.env.NODE_ENV="production"' \
	--loader:.ttf=dataurl --loader:.woff=dataurl --loader:.woff2=dataurl --log-level=error
cp "$here/dashboard/page.html" .
ln -s "$modules/@grafana/ui/dist/public" public
chromium --headless --no-sandbox --allow-file-access-from-files --user-data-dir=profile --hide-scrollbars \
	--window-size=1500,1592 --virtual-time-budget=30000 --screenshot=page.png \
	"file://$dir/page.html?prometheus=http://$prometheus&from=$from&to=$to" > chromium.log 2>&1
pngquant --quality 40-90 --speed 1 --output - page.png
