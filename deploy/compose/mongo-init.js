// Creates the replica set and its users unless they exist. It may run again at any
// time, and then sets the password of the registry's user again.
const secret = (name) => require('fs').readFileSync(`/run/secrets/${name}`, 'utf8').trim();
const hosts = ['mongo-1:27017', 'mongo-2:27017', 'mongo-3:27017'];
const root = { user: 'admin', pwd: secret('admin-password') };
const registry = { user: 'registry', pwd: secret('registry-password'), roles: [{ role: 'readWrite', db: 'registry' }] };

// Without a password, MongoDB accepts only connections from its own machine, only to
// create the set and the first user, and only until that user exists.
function begin() {
  const admin = new Mongo('mongodb://127.0.0.1:27017/?directConnection=true').getDB('admin');
  try {
    admin.auth(root.user, root.pwd);
    return;
  } catch (e) {
    print(`the replica set or its admin user does not exist yet: ${e.message}`);
  }
  try {
    // Only the primary can create the first user. The priority makes this member the
    // primary whenever it can be.
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
// Restoring a dump with its oplog needs this role; root does not include it.
if (!admin.getRole('replayer')) admin.createRole({ role: 'replayer', privileges: [{ resource: { anyResource: true }, actions: ['anyAction'] }], roles: [] });
admin.grantRolesToUser(root.user, ['replayer']);
if (admin.getUser(registry.user)) admin.updateUser(registry.user, { pwd: registry.pwd, roles: registry.roles });
else admin.createUser(registry);
print('the replica set and its users exist');
