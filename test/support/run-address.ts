/** What a service writes of itself; nothing is at its addresses. */
import { DEMONSTRATION_FILE } from '../../src/config/demonstration.ts'
import type { RunAddress } from '../../src/embedded/data-dir.ts'

const NOWHERE = 'http://127.0.0.1:9'

export const RUN_ADDRESS: RunAddress = {
  base_url: NOWHERE,
  admin_url: null,
  first_key: null,
  sign_in_url: null,
  database_url: NOWHERE,
  nats_url: NOWHERE,
  clickhouse_url: NOWHERE,
  simulator_url: null,
  config_file: DEMONSTRATION_FILE,
}
