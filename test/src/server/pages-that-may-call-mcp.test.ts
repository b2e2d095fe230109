/** The service's own pages may call `/mcp`, by each name of this machine, and those that the configuration names. */
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { pageOrigins } from '../../../src/server/gateway/page-origins.ts'

const config = (allowed_origins: readonly string[] = []) => configFile.parse({ mcp: { allowed_origins } })

t.test('origins', async (t) => {
  t.same(pageOrigins('https://gateway.example.com/', config)(), ['https://gateway.example.com'])
  t.same(pageOrigins('http://127.0.0.1:8080', config)(), [
    'http://localhost:8080',
    'http://127.0.0.1:8080',
    'http://[::1]:8080',
  ])
  const named = ['https://app.example.com']
  t.same(pageOrigins('https://gateway.example.com', () => config(named))(), [
    'https://gateway.example.com',
    ...named,
  ])
  for (const origin of [
    'app.example.com',
    'https://app.example.com/',
    'https://app.example.com/a',
    'null',
    '*',
  ])
    t.throws(() => config([origin]), origin)
})
