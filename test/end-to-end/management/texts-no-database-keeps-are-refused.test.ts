/** A NUL or half a character, which PostgreSQL cannot keep, is a 400 that names the field, wherever it comes. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

t.test('texts that no database keeps', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const operator = await signIn(service, { role: 'operator' })
  const { body: organization } = await operator.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const file = { name: 'Clerk', model: 'fast', persona: 'A clerk.' }
  const { body: agent } = await operator.send('POST', '/agents', { account_id, file })
  const { body: base } = await operator.send('POST', '/knowledge-bases', { account_id, name: 'Book' })
  const draft = `/agents/${agent.id}/draft`

  const requests: readonly (readonly [method: string, path: string, field: string, body?: object])[] = [
    ['POST', '/organizations', 'name', { name: 'a\0b' }],
    ['POST', '/agents', 'file.persona', { account_id, file: { ...file, persona: 'a\ud800b' } }],
    ['PUT', draft, 'file.name', { file: { ...file, name: 'a\0b' } }],
    ['PUT', draft, 'file.knowledge.1', { file: { ...file, knowledge: ['default', '\0'] } }],
    ['POST', '/knowledge-bases', 'name', { account_id, name: 'a\0b' }],
    ['POST', `/knowledge-bases/${base.id}/readers`, 'reader_id', { reader_id: 'a\0b' }],
    ['DELETE', `/knowledge-bases/${base.id}/readers/%00`, 'reader_id'],
    ['GET', `/knowledge-bases/${base.id}/pages?account_id=%00`, 'account_id'],
    ['GET', '/knowledge-bases/%00', 'id'],
    ['GET', `/knowledge-bases/${base.id}/imports/%00`, 'import_id'],
    ['GET', '/search?q=key_%00', 'q'],
    ['GET', '/agents/%00', 'id'],
    ['GET', '/accounts?cursor=AA', 'cursor'],
    ['GET', `/keys?account_id=${account_id}&cursor=AA`, 'cursor'],
  ]
  for (const [method, path, field, body] of requests) {
    const answer = await operator.send(method, path, body)
    t.match(answer, { status: 400, body: { error: { code: 'invalid_request' } } }, `${method} ${path}`)
    t.ok(answer.body.error.message.startsWith(`${field}: `), answer.body.error.message)
  }
})
