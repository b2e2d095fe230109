/** `tollgate agent`: agents from their files. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { openFresh, sharePostgres } from '../postgres/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const engines = await sharePostgres()

t.test('agents from their files', async (t) => {
  const { database } = await openFresh(t, engines)
  const config = {
    models: [
      { id: 'sonata-large', aliases: ['sonata'], capabilities: { web_search: true } },
      { id: 'upcoming', callable: false },
    ],
  }
  const wiring = wiringOn(database, config, { ask: async () => null })
  const { json, refused, text } = commandsOn(wiring)
  const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

  const folder = t.testdir({})
  const fileOf = async (content: string, name = 'agent.yaml') => {
    const path = join(folder, name)
    await writeFile(path, content)
    return path
  }
  const account = async (kind: 'organization' | 'personal' = 'organization') =>
    (await database.accounts.create({ name: 'Acme', kind, credit: 0n })).account.id

  const PLAIN = 'name: Support\nmodel: sonata\npersona: Be polite.\n'

  t.test('an agent from its file to its end', async (t) => {
    const accountId = await account()
    const path = await fileOf(`${PLAIN}temperature: 0.2\nknowledge: [default]\nweb_search: true\n`)
    const created = await json('agent', 'create', '--account', accountId, '--file', path)
    const expected = {
      id: created.id,
      account_id: accountId,
      name: 'Support',
      model: 'sonata',
      persona: 'Be polite.',
      temperature: 0.2,
      knowledge: ['default'],
      web_search: true,
      image_generation: false,
      state: 'draft',
      created_at: created.created_at,
      draft: null,
      drafted_at: null,
      updated_at: created.created_at,
    }
    t.match(created.id, /^agt_[0-9A-Z]{26}$/)
    t.match(created.created_at, TIME)
    t.same(created, expected)
    t.same(await json('agent', 'show', created.id), expected)
    t.same(await json('agent', 'list', '--account', accountId), [expected])

    const changed = await json('agent', 'update', created.id, '--file', await fileOf(`${PLAIN}`))
    t.match(changed, {
      temperature: null,
      knowledge: { length: 0 },
      web_search: false,
      created_at: created.created_at,
    })
    const published = await json('agent', 'publish', created.id)
    t.equal(published.state, 'published')
    t.same(await json('agent', 'publish', created.id), published, 'a second time changes nothing')
    t.equal((await json('agent', 'unpublish', created.id, '--yes')).state, 'draft')
    t.match(await text('agent', 'show', created.id), /^name +Support$/m)

    const bound = ['--account', accountId, '--name', 'shop', '--kind', 'agent', '--agent', created.id]
    const key = await json('key', 'create', ...bound, '--spend-cap', '5')
    t.match(key, { kind: 'agent', agent_id: created.id, spend_cap: '5', revoked_at: null })
    t.match(
      await refused('agent', 'delete', created.id),
      /delete the agent Support \(agt_\S+\) for good.*Add --yes/,
    )
    t.equal((await json('agent', 'show', created.id)).state, 'draft', 'without an answer it stays')
    t.equal((await json('agent', 'delete', created.id, '--yes')).state, 'deleted')
    t.equal((await json('key', 'show', key.id)).revoked_at, null, 'calls get an error about the agent')
    t.equal((await json('agent', 'delete', created.id, '--yes')).state, 'deleted')
    t.same(await json('agent', 'list', '--account', accountId), [])
    t.match(await json('agent', 'list', '--account', accountId, '--deleted'), [
      { id: created.id, state: 'deleted' },
    ])
    for (const words of [
      ['agent', 'publish', created.id],
      ['agent', 'update', created.id, '--file', path],
      ['key', 'create', ...bound],
    ])
      t.match(await refused(...words), `error: Agent ${created.id} has been deleted.\n`, words.join(' '))
  })

  t.test('an agent belongs to an organization, and its keys to that', async (t) => {
    const path = await fileOf(PLAIN)
    const [own, other, person] = [await account(), await account(), await account('personal')]
    t.match(await refused('agent', 'create', '--account', person, '--file', path), /organization/)
    t.match(
      await refused('agent', 'create', '--account', 'acc_x', '--file', path),
      /There is no account acc_x/,
    )
    t.match(await refused('agent', 'show', 'agt_x'), 'error: There is no agent agt_x.\n')
    const { id } = await json('agent', 'create', '--account', own, '--file', path)
    t.match(
      await refused('key', 'create', '--account', other, '--name', 'n', '--kind', 'agent', '--agent', id),
      `error: There is no agent ${id}.\n`,
    )
    t.same(await json('agent', 'list', '--account', other), [])
    t.match(await refused('agent', 'list', '--account', 'acc_x'), /There is no account/)
  })

  t.test('each problem of a file is reported with its place', async (t) => {
    const accountId = await account()
    const broken = async (content: string, name?: string) => {
      const path = await fileOf(content, name)
      const told = await refused('agent', 'create', '--account', accountId, '--file', path)
      return told.replaceAll(path, 'F')
    }
    t.equal(
      await broken(
        'name: ""\nmodel: m\npersonna: x\ntemperature: 3\nknowledge: default\nweb_search: "yes"\n',
      ),
      [
        'error: The agent file has problems:',
        'F:1:1 persona: is required.',
        'F:1:7 name: must be at least 1 characters long.',
        'F:3:1 personna: There is no such field. Did you mean "persona"?',
        'F:4:14 temperature: must be at most 2.',
        'F:5:12 knowledge: must be a list, not a string.',
        'F:6:13 web_search: must be a boolean, not a string.',
        '',
      ].join('\n'),
    )
    t.match(await broken('name: [\n'), /^error: The agent file has problems:\nF:\d+:\d+ /)
    t.match(await broken(' \n'), /F:1:1 The file is empty\./)
    t.match(await broken('#'.repeat(300_000)), /F:1:1 It is over 262144 bytes\./)
    t.match(
      await refused('agent', 'create', '--account', accountId, '--file', 'nowhere.yaml'),
      /nowhere\.yaml:1:1 There is no such file\./,
    )
  })

  t.test('a persona may speak of variables: nothing is filled in', async (t) => {
    const path = await fileOf('name: A\nmodel: sonata\npersona: Say ${PATH} as it is.\n')
    const { persona } = await json('agent', 'create', '--account', await account(), '--file', path)
    t.equal(persona, 'Say ${PATH} as it is.')
  })

  t.test('what calls would be refused for is a warning of the answer', async (t) => {
    const accountId = await account()
    const warned = async (content: string) => {
      const words = ['agent', 'create', '--account', accountId, '--file', await fileOf(content)]
      const { code, stdout, stderr } = await command([...words, '--json'], wiring)
      t.match([code, JSON.parse(stdout).state], [0, 'draft'])
      return { id: JSON.parse(stdout).id as string, stderr }
    }
    const unknown = await warned('name: A\nmodel: sonata-larg\npersona: x\nknowledge: [kb_x, default]\n')
    t.match(unknown.stderr, 'no model "sonata-larg". Did you mean "sonata-large"?')
    t.match(unknown.stderr, `"kb_x": kb grant kb_x --to ${unknown.id}`)
    t.equal(unknown.stderr.split('\n').length, 3)
    t.match(await command(['agent', 'publish', unknown.id], wiring), {
      code: 1,
      stderr: /would be refused: .*no model/,
    })
    t.match((await warned('name: A\nmodel: upcoming\npersona: x\n')).stderr, /none that chat calls may use/)
    const drawing = await warned(
      'name: A\nmodel: sonata\npersona: x\nimage_generation: true\nweb_search: true\n',
    )
    t.match(drawing.stderr, /^warning: .*: image_generation is on, .*\n$/)
  })
})
