/** A refusal names a field that is missing, or no number, in words that do not come from a programming language. */
import t from 'tap'
import { readQuery } from '../../../../pipelines/calls/query.ts'
import { contentModelsQuery } from '../../../../schemas/accounts/models.ts'
import { ENDPOINTS } from '../../../../schemas/endpoints/index.ts'
import { readJsonBody } from '../../../../src/protocols/request/client-json.ts'

const messageOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    return (error as Error).message
  }
  return ''
}

t.test('a body without a field that it needs', async (t) => {
  const bodies = ENDPOINTS.flatMap(({ body, path }) => (body ? [{ ...body, path }] : []))
  for (const { schema, path } of bodies)
    t.notMatch(
      messageOf(() => readJsonBody(schema, Buffer.from('{}'))),
      /undefined|NaN/,
      path,
    )
  const { schema } = bodies.find(({ path }) => path === '/v1/chat/completions')!
  const refused = (text: string) => messageOf(() => readJsonBody(schema, Buffer.from(text)))
  t.equal(refused('{}'), "Field 'model' is not valid: it is missing")
  t.equal(refused('{"model":"m"}'), "Field 'messages' is not valid: it is missing")
  const withTool = '{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[{}]}'
  t.equal(refused(withTool), "Field 'tools[0].type' is not valid: it is missing")
  t.match(refused('{"model":7}'), 'expected string, received number')
})

t.test('a parameter that is no number', async (t) => {
  t.equal(
    messageOf(() => readQuery(contentModelsQuery, 'pageSize=x')),
    'Parameter pageSize: it is not a number.',
  )
})
