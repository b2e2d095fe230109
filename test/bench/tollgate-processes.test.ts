import t from 'tap'
import { roleOf } from '../../bench/subjects/tollgate-processes.ts'

t.test('each process of the service is known by its command line', async (t) => {
  const roles = {
    'node /home/tollgate/src/main.ts --role=gateway --index=0': 'gateway',
    'tollgate: gateway 0': 'gateway',
    'tollgate: settler 0': 'settler',
    'tollgate: tasks 0': 'tasks',
    'node /home/tollgate/src/embedded/clickhouse/server.ts': 'clickhouse',
    '/home/tollgate/postgres/bin/postgres -D /tmp/bench/data/postgres': 'postgres',
    'postgres: checkpointer': 'postgres',
    '/usr/sbin/nats-server -c /tmp/bench/data/nats.conf': 'nats',
    'node src/main.ts serve': 'supervisor',
  }
  t.same(Object.keys(roles).map(roleOf), Object.values(roles))
})
