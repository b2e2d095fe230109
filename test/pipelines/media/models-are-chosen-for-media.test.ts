/** Which model a request of media is for: who may call it, and what is answered where there is none. */
import t from 'tap'
import { selectMediaModel } from '../../../pipelines/media/select-media.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { loadConfigFile } from '../../../src/config/load.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { KnownKey } from '../../../src/credentials/credentials.ts'

const loaded = loadConfigFile(DEMONSTRATION_FILE, { TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1' })
if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
const { config } = loaded
const whole = createCatalog(config)

const DIGITAL = /^(?:dh|clip)-/
const without = createCatalog({ ...config, models: config.models.filter(({ id }) => !DIGITAL.test(id)) })
const idle = createCatalog({
  ...config,
  models: config.models.map((entry) => (DIGITAL.test(entry.id) ? { ...entry, callable: false } : entry)),
})

const keyFor = (allowedModels: readonly string[] | null) =>
  ({ key: { allowedModels }, account: { allowedModels: null } }) as Partial<KnownKey> as KnownKey
const anyone = keyFor(null)

t.test('a missing model is 400, but 404 for those of digital humans and clips', async (t) => {
  const names = config.models.map(({ id }) => id).filter((id) => DIGITAL.test(id))
  t.equal(names.length, 8)
  for (const name of names) {
    t.equal(selectMediaModel(whole, anyone, name).id, name)
    for (const catalog of [without, idle])
      t.throws(() => selectMediaModel(catalog, anyone, name), { code: 'model_not_found', status: 404 }, name)
  }
  for (const name of ['dh-nothing', 'clip-nothing'])
    t.throws(() => selectMediaModel(whole, anyone, name), { code: 'model_not_found', status: 404 }, name)
  for (const name of ['nothing', 'sonata-next', 'my-dh-nothing', 'constructor'])
    t.throws(() => selectMediaModel(whole, anyone, name), { code: 'model_not_found', status: 400 }, name)
})

t.test('a key is asked for the model that permits the call', async (t) => {
  const forbidden = { code: 'model_not_allowed', status: 403 }
  t.throws(() => selectMediaModel(whole, keyFor([]), 'demo-image'), forbidden)
  t.throws(
    () => selectMediaModel(whole, keyFor(['clip-subtitle']), 'clip-subtitle', 'clip-compose'),
    forbidden,
  )
  const composing = keyFor(['clip-compose'])
  t.equal(selectMediaModel(whole, composing, 'clip-subtitle', 'clip-compose').id, 'clip-subtitle')
  t.throws(() => selectMediaModel(whole, composing, 'clip-subtitle'), forbidden)
})
