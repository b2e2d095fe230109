/** An operator sees what calls cost at the provider and what they leave: of channels, of accounts, and of one call. */
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import { button, callsInLog, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

/** A second channel, with a cost, several keys and an order by cost. */
const CONFIG = STORY_CONFIG.replace(
  'models:\n',
  'models:\n  - { id: earner, strategy: least_cost, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000", reasoning: "3000000", service_tiers: { flex: "0.5" } } }\n',
).replace(
  'channels:\n',
  [
    'channels:',
    '  - id: costed',
    '    provider: deepseek',
    '    protocol: chat-completions',
    '    base_url: ${TEST_SIMULATOR_URL}/v1',
    '    api_keys: [test-key-of-the-first-one, test-key-of-the-second]',
    '    models: { earner: "sim-earner@prompt_tokens=100,tokens=10" }',
    '    cost: { earner: { unit: 1M_tokens, input: "400000", output: "900000" } }',
    '',
  ].join('\n'),
)

t.test('margins', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key, accountId } = await service.newKey('1000000', { accountLogs: true })
  const call = { model: 'earner', messages: [{ role: 'user', content: 'Hello!' }] }
  for (let made = 0; made < 2; made++) t.equal((await service.chat(key, call)).status, 200)
  await callsInLog(service, key, 2)
  await withEachHand(t, 'margins', async (_, { hand, page, look }) => {
    await signIn(service, page, { name: 'Olga', role: 'operator' })

    await hand.press(link(page, 'Channels'))
    await heading(page, 'Channels').waitFor()
    const channel = row(page, 'costed')
    // Twice 100 x 0.4 + 10 x 0.9, and twice 100 x 1 + 10 x 2 less that.
    await channel.getByText('98').waitFor()
    await channel.getByText('142').waitFor()
    await channel.getByText('Cheapest first').waitFor()
    await hand.press(button(channel, 'Test'))
    await page.getByRole('status').getByText('Provider cost').waitFor()
    await look('channels-with-costs')

    await hand.press(link(page, 'Models'))
    await heading(page, 'Models').waitFor()
    await page.getByText('earner').first().waitFor()
    await look('models-with-prices')
    await hand.press(page.getByRole('link', { name: 'earner' }).first())
    await page.getByRole('dialog').getByText('Reasoning').waitFor()
    await look('model-with-kinds')

    const { pathname } = new URL(page.url())
    const console = pathname.slice(0, pathname.lastIndexOf('/'))
    await page.goto(`${service.baseUrl}${console}/usage?scope=installation&by=channel`)
    await row(page, 'costed').getByText('142').waitFor()
    // Of all tests that have used the service.
    await page
      .getByText(/^credits, \d+ calls? with a known provider cost$/)
      .first()
      .waitFor()
    await look('usage-with-margins')

    await page.goto(`${service.baseUrl}${console}/calls?account=${accountId}`)
    await hand.press(row(page, 'earner').getByRole('link').first())
    const drawer = page.getByRole('dialog')
    await drawer.getByText('Provider cost').waitFor()
    await drawer.getByText(/^71/).waitFor()
    await look('call-with-margin')
  })
})
