/**
 * Whatever an account has, another account asks for it as for what is not there: the same status and the same words,
 * at every endpoint that takes an id.
 */
import t from 'tap'
import { newId } from '../../../src/core/keys/ids.ts'
import { draft } from '../../src/postgres/knowledge/wiki-support.ts'
import { borrowService } from '../../support/lend-services.ts'
import { testConfig } from '../../support/service.ts'
import { say, traceOf } from '../support.ts'
import { agentKey, newOrganization, tasksOf, write } from './support.ts'

const WIKI = '/api/v1/ext/wiki'
const SECRET = 'kaleidoscope'
const NOWHERE = 'perspicacious'
const SHORTEST_ID_CHARS = 8

interface Answer {
  readonly status: number
  readonly body: string
}

/** One way to ask for something: what is theirs must be answered as what is nobody's. */
interface Question {
  readonly theirs: string
  readonly nobodys: string
  readonly status: number
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly path: (id: string) => string
  readonly message?: (id: string) => object
  /** Asking changes something: the owner does not try. */
  readonly isForGood?: true
  /** Needs a signature, not a key: not even the owner gets it this way. */
  readonly isSigned?: true
}

const TASK_PATHS: Readonly<Record<string, readonly (readonly ['GET' | 'DELETE', string])[]>> = {
  image: [
    ['GET', '/v1/images/generations/'],
    ['DELETE', '/v1/images/generations/'],
  ],
  video: [
    ['GET', '/v1/videos/generations/'],
    ['DELETE', '/v1/videos/generations/'],
  ],
  avatar: [
    ['GET', '/v1/videos/avatars/'],
    ['DELETE', '/v1/videos/avatars/'],
  ],
  voice: [
    ['GET', '/v1/audio/voices/'],
    ['DELETE', '/v1/audio/voices/'],
  ],
  music: [['GET', '/v1/music/generations/']],
  speech: [['GET', '/v1/audio/speech/']],
  subtitle: [['GET', '/v1/videos/clip-subtitles/']],
}

t.test('one account and another', async (t) => {
  const service = await borrowService(
    t,
    testConfig({ fast: { simulate: 'tokens=2' }, 'clip-compose': { served: false } }),
  )
  const { database, baseUrl } = service

  const send = async (key: string, question: Question, id: string): Promise<Answer> => {
    const { method = 'GET', path, message } = question
    const response = await fetch(baseUrl + path(id), {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(message && { body: JSON.stringify(message(id)) }),
    })
    const body = await response.text()
    // A short number stands in other places too.
    return {
      status: response.status,
      body: id.length < SHORTEST_ID_CHARS ? body : body.replaceAll(id, '<id>'),
    }
  }
  const keyOf = async (accountId: string, more: object = {}) =>
    (await database.keys.create({ name: 'key', accountId, ...more })).raw

  // Those who ask: another organization with all its keys, and somebody who belongs to nobody.
  const strangers = await newOrganization(database, 'strangers')
  const lone = await service.newKey('1000')
  const page = draft('own.md', { title: 'Granite', text: 'Granite is hard.', tags: ['stone'] })
  for (const accountId of [strangers, lone.accountId]) await write(database, accountId, [page])
  const askers = {
    organization: await keyOf(strangers, { accountLogs: true }),
    employee: await keyOf(strangers, { kind: 'employee' }),
    person: lone.key,
  }
  const words = ['granite', 'granit', 'garnite', 'stone', SECRET, 'kaleidoskop', 'kal', `granite ${SECRET}`]
  const search = (key: string) =>
    Promise.all(
      words.map(async (q) => (await service.get(key, `${WIKI}/search?q=${encodeURIComponent(q)}`)).text()),
    )
  const before = await search(askers.organization)

  // What there is to see.
  const owners = await newOrganization(database, 'owners')
  const owner = await database.keys.create({ name: 'owner', accountId: owners, accountLogs: true })
  const source = { filename: 'a.pdf', locator: null, compiled_at: null, model: null }
  const r2_key = `sources/${SECRET}/a.pdf`
  const secret = draft('secret.md', {
    title: SECRET,
    text: `${SECRET} of granite`,
    tags: [SECRET],
    source: { ...source, r2_key },
  })
  const more = Array.from({ length: 40 }, (_, i) =>
    draft(`${i}.md`, { title: `Granite ${i}`, text: `granit stone ${SECRET}`, links: [SECRET] }),
  )
  const ownBase = await write(database, owners, [secret, ...more])
  const base = (await database.knowledge.createBase(owners, SECRET)).id
  await write(database, owners, [secret], base)
  const readable = { id: ownBase, kbId: 'default', name: '', pages: 0 }
  const [entry] = await database.knowledge.listPagesByTag([readable], SECRET, 1)
  const pageId = entry!.id
  const tasks = await tasksOf(service, owners, owner.key.id)
  const called = await service.chat(owner.raw, { model: 'fast', messages: say('hi') })
  await called.arrayBuffer()
  const [row] = await service.logs(owner.raw, (rows) => rows.length > 0, `&ref=${traceOf(called)}`)

  const nobodysPage = newId('page')
  const nobodysBase = newId('kb')
  const get = (path: (id: string) => string, theirs: string, nobodys: string, status: number): Question => ({
    theirs,
    nobodys,
    status,
    path,
  })
  const ofPage = (path: (id: string) => string, status = 404) => get(path, pageId, nobodysPage, status)
  const ofBase = (path: (id: string) => string) => get(path, base, nobodysBase, 404)
  const ofWord = (path: (word: string) => string) => get(path, SECRET, NOWHERE, 200)
  const tool = (name: string, theirs: string, nobodys: string, args: (id: string) => object): Question => ({
    theirs,
    nobodys,
    status: 200,
    method: 'POST',
    path: () => '/mcp',
    message: (id) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: args(id) },
    }),
  })
  const questions: Readonly<Record<string, Question>> = {
    page: ofPage((id) => `${WIKI}/pages/${id}`),
    backlinks: ofPage((id) => `${WIKI}/pages/${id}/backlinks`),
    source: ofPage((id) => `${WIKI}/pages/${id}/source`),
    pages: ofPage((id) => `${WIKI}/pages?ids=${id}`, 200),
    'search in a base': ofBase((id) => `${WIKI}/search?q=${SECRET}&kb_id=${id}`),
    'tags of a base': ofBase((id) => `${WIKI}/tags?kb_id=${id}`),
    'a tag of a base': ofBase((id) => `${WIKI}/tags/${SECRET}?kb_id=${id}`),
    'pages of a base': ofBase((id) => `${WIKI}/pages?ids=${pageId}&kb_id=${id}`),
    'a base by its real id': get((id) => `${WIKI}/tags?kb_id=${id}`, ownBase, nobodysBase, 404),
    'search for a word': ofWord((word) => `${WIKI}/search?q=${word}`),
    'a tag': ofWord((word) => `${WIKI}/tags/${word}`),
    search_wiki: tool('search_wiki', SECRET, NOWHERE, (q) => ({ q })),
    list_by_tag: tool('list_by_tag', SECRET, NOWHERE, (tag) => ({ tag })),
    read_page: tool('read_page', pageId, nobodysPage, (id) => ({ id })),
    read_pages: tool('read_pages', pageId, nobodysPage, (id) => ({ ids: [id] })),
    'backlinks over MCP': tool('backlinks', pageId, nobodysPage, (id) => ({ id })),
    get_source: tool('get_source', pageId, nobodysPage, (id) => ({ id })),
    'a call of the log': get((id) => `/v1/logs/${id}`, String(row!.id), '9007199254740000', 404),
    file: {
      ...get((key) => `/files/${key}`, r2_key, `sources/${NOWHERE}/a.pdf`, 403),
      isSigned: true,
    },
    ...Object.fromEntries(
      [...tasks].flatMap(([kind, id]) =>
        TASK_PATHS[kind]!.map(([method, path]) => [
          `${method} ${kind}`,
          {
            ...get((id) => path + id, id, `${id.slice(0, id.indexOf('_'))}_${newId('page').slice(5)}`, 404),
            method,
            ...(method === 'DELETE' && { isForGood: true as const }),
          },
        ]),
      ),
    ),
  }

  t.test('the owner finds it all', async (t) => {
    for (const [what, question] of Object.entries(questions)) {
      if (question.isForGood || question.isSigned) continue
      const found = await send(owner.raw, question, question.theirs)
      t.equal(found.status, 200, `${what}: ${found.body}`)
      t.notSame(found, await send(owner.raw, question, question.nobodys), what)
    }
  })

  t.test('for others, theirs is as nobody’s', async (t) => {
    for (const [who, key] of Object.entries(askers))
      for (const [what, question] of Object.entries(questions)) {
        const { theirs, nobodys, status } = question
        const answer = await send(key, question, theirs)
        t.equal(answer.status, status, `${who}: ${what}: ${answer.body}`)
        t.notMatch(answer.body, SECRET, `${who}: ${what}`)
        t.same(answer, await send(key, question, nobodys), `${who}: ${what}`)
      }
  })

  t.test('what another account writes changes no answer of a search, not even a score', async (t) => {
    t.same(await search(askers.organization), before)
    t.match(before[0], '"total_hits":1')
  })

  t.test('lists hold the own alone', async (t) => {
    const { organization, person } = askers
    for (const key of [organization, person]) {
      const { data } = JSON.parse(
        (
          await send(
            key,
            get(() => `${WIKI}/kbs`, '', '', 200),
            'x',
          )
        ).body,
      )
      t.match(data, [{ kb_id: 'default', page_count: 1 }])
      t.equal(data.length, 1)
      t.match(await (await service.get(key, `${WIKI}/tags`)).json(), { data: [{ tag: 'stone', count: 1 }] })
      for (const [, path] of Object.values(TASK_PATHS).flat()) {
        if (path.includes('clip-subtitles')) continue
        const listed = await (await service.get(key, path.slice(0, -1))).text()
        t.notOk(
          [...tasks.values()].some((id) => listed.includes(id)),
          path,
        )
      }
    }
    const period = '&scope=account&include=in_flight'
    for (const narrowing of [
      '',
      `&ref=${row!.request_id}`,
      `&ref=${tasks.get('video')}`,
      `&key_id=${owner.key.id}`,
    ])
      t.match(
        await (await service.get(organization, `/v1/logs?limit=9${period}${narrowing}`)).json(),
        { data: { length: 0 }, in_flight: { length: 0 }, has_more: false },
        narrowing,
      )
    t.match(await (await service.get(organization, '/v1/logs/summary?scope=account')).json(), {
      total: { requests: 0 },
    })
  })

  t.test('an agent key opens nothing, and its agent no base of others', async (t) => {
    const key = await agentKey(database, strangers)
    for (const [what, question] of Object.entries(questions)) {
      if (question.isSigned) continue
      const answer = await send(key, question, question.theirs)
      t.equal(answer.status, 403, what)
      t.same(answer, await send(key, question, question.nobodys), what)
    }
    const asked = async (base: string) => {
      const response = await service.chat(await agentKey(database, strangers, [base]), {
        model: 'any',
        messages: say(SECRET),
      })
      return { status: response.status, body: (await response.text()).replaceAll(base, '<id>') }
    }
    const refused = await asked(base)
    t.equal(refused.status, 403, refused.body)
    for (const id of [nobodysBase, ownBase]) t.same(await asked(id === ownBase ? ownBase : id), refused)
    t.equal((await asked('default')).status, 200)
  })

  t.test('a granted base is readable, and a revoked one is as if it were not there', async (t) => {
    const ask = () => send(askers.organization, questions['search in a base']!, base)
    await database.knowledge.grantBase(base, strangers)
    t.match(await ask(), { status: 200, body: SECRET })
    const readIn = await service.get(askers.organization, `${WIKI}/pages?ids=${pageId}&kb_id=${base}`)
    t.match(await readIn.json(), { data: { length: 0 } }, 'a page of another base of the same owner')
    await database.knowledge.revokeBase(base, strangers)
    t.same(await ask(), await send(askers.organization, questions['search in a base']!, nobodysBase))
  })
})
