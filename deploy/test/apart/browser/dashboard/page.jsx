// Draws a dashboard of time series with Grafana's components. esbuild puts its JSON in; the
// page's address names Prometheus and the time: ?prometheus=URL&from=SECONDS&to=SECONDS.
import {createRoot} from 'react-dom/client';
import {
	createTheme, dateTime, FieldColorModeId, FieldType, getDisplayProcessor, rangeUtil, ThemeContext,
} from '@grafana/data';
import {GlobalStyles, Icon, InlineField, Input, PanelChrome, TimeSeries} from '@grafana/ui';
import '@fontsource/inter/latin-400.css';
import '@fontsource/inter/latin-500.css';
import dashboard from 'dashboard';

const scrape = 15; // seconds; timeInterval of datasources.yaml
const row = 30, gap = 8; // pixels of Grafana's grid
const custom = {drawStyle: 'line', lineWidth: 1, fillOpacity: 0, showPoints: 'auto', pointSize: 5}; // Grafana's defaults
const theme = createTheme({colors: {mode: 'dark'}});
const query = new URLSearchParams(location.search);
const span = {from: dateTime(query.get('from') * 1000), to: dateTime(query.get('to') * 1000)};
const range = {...span, raw: span};
const variables = dashboard.templating.list.filter((v) => v.type === 'query');

// interpolate replaces the variables, each of which is "All".
function interpolate(expr, interval) {
	for (const {name, allValue} of variables) expr = expr.replaceAll('$' + name, allValue);
	return expr.replaceAll('$__rate_interval', Math.max(interval + scrape, 4 * scrape) + 's');
}

// ask returns a frame for each series of a panel of that width in pixels.
async function ask({title, targets, fieldConfig: {defaults}}, width) {
	const interval = rangeUtil.calculateInterval(range, width, scrape + 's').intervalMs / 1000;
	const [start, end] = [range.from, range.to].map((t) => Math.floor(t.unix() / interval) * interval);
	const answers = await Promise.all(targets.map(async ({expr, legendFormat}) => {
		const form = new URLSearchParams({query: interpolate(expr, interval), start, end, step: interval});
		const response = await fetch(query.get('prometheus') + '/api/v1/query_range', {method: 'POST', body: form});
		const answer = await response.json();
		if (answer.status !== 'success') throw new Error(title + ': ' + answer.error);
		return answer.data.result.map(({metric, values}) => ({
			name: legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => metric[label] ?? ''), values,
		}));
	}));
	return answers.flat().map(({name, values}, seriesIndex) => {
		const time = {
			name: 'Time', type: FieldType.time, values: values.map(([t]) => t * 1000), config: {interval: interval * 1000},
		};
		const value = {
			name: 'Value', type: FieldType.number, values: values.map(([, v]) => Number(v)), state: {seriesIndex},
			config: {
				displayNameFromDS: name, color: {mode: FieldColorModeId.PaletteClassic},
				...defaults, custom: {...custom, ...defaults.custom},
			},
		};
		value.display = getDisplayProcessor({field: value, theme});
		return {length: values.length, fields: [time, value]};
	});
}

function Panel({panel, frames, style, width, height}) {
	return <div style={style}>
		<PanelChrome title={panel.title} description={panel.description} width={width} height={height} padding="sm"
			titleItems={panel.links && <PanelChrome.TitleItem><Icon name="external-link-alt" /></PanelChrome.TitleItem>}>
			{(w, h) => frames.length === 0 ? <div className="empty">No data</div>
				: <TimeSeries frames={frames} timeRange={range} timeZone="utc" width={w} height={h}
					legend={{calcs: [], ...panel.options.legend}} options={panel.options} />}
		</PanelChrome>
	</div>;
}

async function draw() {
	const column = (innerWidth - gap) / 24;
	const panels = await Promise.all(dashboard.panels.map(async (panel) => {
		const {type, transformations = [], fieldConfig: {overrides}, gridPos: {x, y, w, h}} = panel;
		if (type !== 'timeseries' || overrides.length > 0 || transformations.length > 0)
			throw new Error(`${panel.title}: only plain time series can be drawn`);
		const place = {width: w * column - gap, height: h * (row + gap) - gap};
		const style = {position: 'absolute', left: x * column, top: y * (row + gap)};
		return {panel, style, ...place, frames: await ask(panel, Math.round(place.width))};
	}));
	const clock = (t) => t.utc().format('YYYY-MM-DD HH:mm:ss');
	createRoot(document.body).render(<ThemeContext.Provider value={theme}>
		<GlobalStyles />
		<header>
			<h3>{dashboard.title}</h3>
			{variables.map(({name, label}) => <InlineField key={name} label={label}>
				<Input width={10} readOnly value="All" />
			</InlineField>)}
			<span><Icon name="clock-nine" /> {clock(range.from)} to {clock(range.to)} UTC</span>
		</header>
		<main>{panels.map((p) => <Panel key={p.panel.id} {...p} />)}</main>
	</ThemeContext.Provider>);
}

draw().catch((e) => { document.body.textContent = e.stack; }); // the picture shows it
