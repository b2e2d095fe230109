/** The router: which route a path finds, and what its parameters are. */
import { EMPTY } from 'rxjs'
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { NO_PARAMS, type Route, Router } from '../../../src/http/router.ts'

const route = (): Route => ({ handler: () => EMPTY })
const ROUTES = {
  list: ['GET', '/things', route()],
  make: ['POST', '/things', route()],
  presets: ['GET', '/things/presets', route()],
  show: ['GET', '/things/{id}', route()],
  remove: ['DELETE', '/things/{id}', route()],
  parts: ['GET', '/things/{id}/parts/{item_id}', route()],
  model: ['GET', '/models/{model+}', route()],
  speak: ['POST', '/models/{model+}:speakNow', route()],
  file: ['GET', '/files/{key*}', route()],
} as const
const router = new Router(Object.values(ROUTES), ['/things/compact'])

const find = (method: string, path: string) => {
  const found = router.find({ method, path })
  return 'route' in found ? found : null
}

t.test('a path finds its route and its parameters', async (t) => {
  const FOUND: readonly [name: keyof typeof ROUTES, path: string, params: object][] = [
    ['list', '/things', {}],
    ['make', '/things', {}],
    ['presets', '/things/presets', {}],
    ['show', '/things/presets2', { id: 'presets2' }],
    ['remove', '/things/a%2Fb%20c', { id: 'a/b c' }],
    ['parts', '/things/presets/parts/%E7%8C%AB', { id: 'presets', item_id: '猫' }],
    ['model', '/models/org/m', { model: 'org/m' }],
    ['model', '/models/org%2Fm:1', { model: 'org/m:1' }],
    ['speak', '/models/org/m:1:speakNow', { model: 'org/m:1' }],
    ['speak', '/models/m%3aspeakNow', { model: 'm' }],
    ['file', '/files/a/b.png', { key: 'a/b.png' }],
    ['file', '/files/', { key: '' }],
  ]
  for (const [name, path, params] of FOUND) {
    const [method, , wanted] = ROUTES[name]
    const found = find(method, path)
    t.equal(found?.route, wanted, path)
    t.same(found?.params, params, path)
  }
  t.equal(find('GET', '/things')?.params, NO_PARAMS, 'a path without parameters reads none')
  t.equal(find('HEAD', '/things/x')?.route, ROUTES.show[2])
})

t.test('a path that is nearly one finds nothing', async (t) => {
  for (const path of [
    '/things/',
    '/things//parts/x',
    '/things/compact',
    '/models/',
    '/models/:speakNow',
    '/models/m:whisperNow',
    '/files',
    '/things/x/',
  ])
    t.match(router.find({ method: 'GET', path }), { code: 'not_found' }, path)
})

t.test('another method is 405, with those that there are', async (t) => {
  const refused = router.find({ method: 'POST', path: '/things/%zz' })
  t.match(refused, { code: 'method_not_allowed', headers: [['allow', 'GET, HEAD, DELETE']] })
})

t.test('a parameter that is not URL-encoded text is 400', async (t) => {
  for (const path of ['/things/%zz', '/things/%E0%A4%A', '/things/%']) {
    const refused = router.find({ method: 'GET', path })
    t.ok(refused instanceof Failure)
    t.match(refused, { code: 'invalid_request', message: 'id: is not URL-encoded text.' })
  }
})
