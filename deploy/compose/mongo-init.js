// Makes the replica set and its users where they are not there yet. It may be
// run again at any time, and gives the registry's user its password anew.
const secret = (name) => require('fs').readFileSync(`/run/secrets/${name}`, 'utf8').trim();
const hosts = ['mongo-1:27017', 'mongo-2:27017', 'mongo-3:27017'];
const root = { user: 'admin', pwd: secret('admin-password') };
const registry = { user: 'registry', pwd: secret('registry-password'), roles: [{ role: 'readWrite', db: 'registry' }] };

// MongoDB lets its own machine make the set and the first user, nothing else,
// and that only until there is one.
function begin() {
  const admin = new Mongo('mongodb://127.0.0.1:27017/?directConnection=true').getDB('admin');
  try {
    admin.auth(root.user, root.pwd);
    return;
  } catch (e) {
    print(`there is no set with our user yet: ${e.message}`);
  }
  try {
    // The first user can be made here only if this member leads: so it does
    // whenever it can.
    admin.adminCommand({ replSetInitiate: { _id: 'registry', members: hosts.map((host, i) => ({ _id: i, host, priority: i === 0 ? 2 : 1 })) } });
  } catch (e) {
    if (e.codeName !== 'AlreadyInitialized') throw e;
  }
  while (!admin.hello().isWritablePrimary) sleep(500);
  admin.createUser({ ...root, roles: ['root'] });
}

begin();
const set = new Mongo(`mongodb://${root.user}:${root.pwd}@${hosts.join(',')}/?replicaSet=registry&authSource=admin`);
const admin = set.getDB('admin');
// Restoring a dump with its oplog needs this, which root has not.
if (!admin.getRole('replayer')) admin.createRole({ role: 'replayer', privileges: [{ resource: { anyResource: true }, actions: ['anyAction'] }], roles: [] });
admin.grantRolesToUser(root.user, ['replayer']);
if (admin.getUser(registry.user)) admin.updateUser(registry.user, { pwd: registry.pwd, roles: registry.roles });
else admin.createUser(registry);
print('the replica set and its users are there');
