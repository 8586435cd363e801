// Sends mixed load to gateways, about 25 requests a second in waves of four minutes:
// load.mjs SECONDS GATEWAY... The gateways accept the sandbox keys.
const [seconds, ...gateways] = process.argv.slice(2);
const asset = {data: {
	assetType: 'bounce', title: 'Нежитлове приміщення', description: 'Перший поверх',
	items: [{
		description: 'Приміщення', unit: {code: 'MTK'}, quantity: 240.5, address: {countryName: 'Україна'},
		classification: {scheme: 'CAV-PS', id: '04121000-2', description: 'Приміщення'},
		registrationDetails: {status: 'unknown'},
	}],
	decisions: [{decisionDate: '2026-11-20T12:00:00+02:00', decisionID: '1637-10'}],
	assetCustodian: {
		name: 'Фонд державного майна', address: {countryName: 'Україна'},
		identifier: {scheme: 'UA-EDR', id: '00032945'},
		contactPoint: {name: 'Реєстратор', telephone: '+380440000000'},
	},
}};
const assets = []; // {id, token}, the newest 200
const any = (list) => list[Math.floor(Math.random() * list.length)];

async function send(method, path, {key, token, body} = {}) {
	const headers = {'Content-Type': 'application/json'};
	if (key) headers.Authorization = 'Basic ' + btoa(key + ':');
	if (token) headers['X-Access-Token'] = token;
	const answer = await fetch(any(gateways) + '/api/' + path, {method, headers, body: body && JSON.stringify(body)});
	return {status: answer.status, body: await answer.json()};
}

async function create() {
	const {status, body} = await send('POST', '2.5/assets', {key: 'broker', body: asset});
	if (status === 201) assets.push({id: body.data.id, token: body.access.token});
	if (assets.length > 200) assets.shift();
	return {status};
}

function change() {
	const {id, token} = any(assets);
	const data = {title: 'Зміна ' + Date.now(), status: 'pending'};
	return send('PATCH', '2.5/assets/' + id, {key: 'broker', token, body: {data}});
}

// The kinds of requests, each with its share in percent.
const kinds = [
	[6, create],
	[6, change],
	[44, () => send('GET', '2.5/assets/' + any(assets).id)],
	[12, () => send('GET', '2.4/assets/' + any(assets).id)],
	[12, () => send('GET', '2.5/assets?descending=1&limit=20')],
	[6, () => send('GET', '2.5/assets?limit=100', {key: 'broker2'})],
	[6, () => send('GET', '2.5/me', {key: 'broker'})],
	[4, () => send('GET', '2.5/assets/' + '0'.repeat(32))], // 404
	[2, () => send('POST', '2.5/assets', {key: 'broker', body: {data: {}}})], // 400
	[2, () => send('POST', '2.5/assets', {key: 'nobody', body: asset})], // 401
];

await create();
const counts = {}, began = Date.now();
for (;;) {
	const passed = (Date.now() - began) / 1000;
	if (passed > seconds) break;
	let dice = Math.random() * 100;
	const [, kind] = kinds.find(([share]) => (dice -= share) < 0);
	kind().then(({status}) => status, () => 'no answer').then((outcome) => {
		counts[outcome] = (counts[outcome] ?? 0) + 1;
	});
	const rate = 25 + 10 * Math.sin(passed / 240 * 2 * Math.PI); // per second
	await new Promise((resolve) => setTimeout(resolve, -Math.log(1 - Math.random()) * 1000 / rate));
}
console.error(counts);
