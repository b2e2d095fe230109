/**
 * An operator finds a failing provider, pauses its channel, sees the calls of customers take another one, and ends the
 * incident. Then they change a price by the form: only its line differs.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../support/eventually.ts'
import { HANDS, mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, chooseFilter, dragOver, heading, link, row, signIn, withEachHand } from './support.ts'

const CONFIG = `# Prices of the spring.
models:
  - { id: shared, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000" } }
  - id: priced    # by the contract
    display_name: Priced
    pricing:
      unit: 1M_tokens
      input: "12.5"   # agreed in May
      output: "100"
channels:
  - id: falling
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: \${TEST_FALLING_KEY}test
    models: { shared: "sim-falling@fault=status:500", priced: "sim-priced@fault=status:500" }
  - id: standing
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: test
    priority: 1
    models: { shared: "sim-standing@tokens=2" }
`

t.test('incident', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { database } = service

  await withEachHand(t, 'incident', async (t, { hand, page, look }) => {
    const { key, accountId: account } = await service.newKey('1000000')
    const call = { model: 'shared', max_tokens: 2, messages: [{ role: 'user', content: 'Hello!' }] }
    t.equal((await service.chat(key, call)).status, 200, 'the customer notices nothing')
    // Each hand has an alert of its own.
    const alarm = `falling-${HANDS.indexOf(hand)}`
    await database.alerts.recordBreakers([{ channelId: alarm, isOpen: true }])

    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'Overview'))
    await page.getByRole('alert').filter({ hasText: 'failing: falling' }).waitFor()
    const failing = page.getByRole('table', { name: 'Failing channels' })
    await row(failing, 'falling').getByText('Failing', { exact: true }).waitFor()
    await look('overview-incident')

    await hand.press(button(row(failing, 'falling'), 'Pause'))
    const pause = page.getByRole('dialog', { name: 'Pause falling' })
    await pause.getByText('lose their last channel').getByText('priced').waitFor()
    await pause.getByText('Calls in the last hour').waitFor()
    await look('channel-pause')
    await hand.write(pause.getByRole('textbox'), 'falling')
    await hand.press(button(pause, 'Pause'))
    await row(failing, 'falling').getByText('Paused', { exact: true }).waitFor()

    await until('no call reaches the paused channel', async () => {
      await service.chat(key, call)
      const { attempts_count: attempts } = await newestCall(service, key)
      return attempts === 1
    })
    await hand.press(link(page, 'All calls'))
    const calls = page.getByRole('table', { name: 'All calls' })
    const choose = (typed: string, name: string) => chooseFilter({ hand, page }, typed, name)
    await choose(account, `test · ${account}`)
    await button(page, 'Remove the filter Account: test').waitFor()
    await row(calls, 'standing').first().waitFor()
    await row(calls, '2 attempts').first().waitFor()
    await page.getByRole('slider').first().locator('canvas').waitFor()
    await look('all-calls')
    if (hand === mouse) {
      await dragOver(page, 0.01, 0.2)
      await page.getByText('No calls match.').waitFor()
      await page.goBack()
      const [from = '', to] = await dragOver(page, 0.01, 0.99)
      t.ok(from! < to!)
      await row(calls, '2 attempts').first().waitFor()
      await page.goBack()
    }
    await choose('stand', 'standing')
    await button(page, 'Remove the filter Channel: standing').waitFor()
    await row(calls, 'standing').first().waitFor()
    await choose('shar', 'shared')
    await hand.press(button(page, 'Model: shared'))
    const not = button(page, 'Remove the filter Model is not: shared')
    await not.waitFor()
    await page.getByText('No calls match.').waitFor()
    await hand.press(not)
    await row(calls, 'standing').first().waitFor()
    await choose('600 s', 'Longer than 600 s')
    await page.getByText('No calls match.').waitFor()
    await hand.press(button(page, 'Clear'))
    await row(calls, 'standing').first().waitFor()

    await hand.press(link(page, 'Overview'))
    await hand.press(button(row(failing, 'falling'), 'Resume'))
    await row(failing, 'falling').getByText('Paused', { exact: true }).waitFor({ state: 'detached' })
    const alert = row(page, `The channel ${alarm} fails`)
    await hand.press(button(alert, 'Acknowledge'))
    const dialog = page.getByRole('dialog', { name: 'Acknowledge the alert' })
    await hand.write(dialog.getByLabel('Note'), 'paused until they were back')
    await hand.press(button(dialog, 'Acknowledge'))
    await dialog.waitFor({ state: 'detached' })
    const [act] = await database.auditRecord.list({ action: 'alert.acknowledge', limit: 1 })
    t.match(act, { after: { note: 'paused until they were back' } })
  })

  await withEachHand(t, 'price', async (t, { hand, page, look }) => {
    const before = readFileSync(service.configPath, 'utf8')
    const price = /input: "([\d.]+)" {3}# agreed/.exec(before)![1]!
    const next = String(Number(price) + 1)
    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'Catalog'))
    await heading(page, 'Catalog').waitFor()
    const models = page.getByRole('table', { name: 'Models' })
    await hand.press(button(row(models, 'priced'), 'Edit'))
    const form = page.getByRole('dialog', { name: 'priced' })
    await look('catalog-form')
    await hand.write(form.getByLabel('Input price', { exact: true }), next)
    await hand.press(button(form, 'Change the text'))
    await page.getByRole('heading', { name: 'Differences from the file' }).waitFor()
    await page.locator('pre').getByText(`input: "${next}"`).waitFor()
    await look('catalog-difference')
    await hand.press(button(page, 'Apply'))
    const apply = page.getByRole('dialog', { name: 'Apply the configuration' })
    await hand.press(button(apply, 'Apply'))
    await page.getByText('Applied.').first().waitFor()
    const after = readFileSync(service.configPath, 'utf8')
    t.equal(after, before.replace(`input: "${price}"`, `input: "${next}"`), 'only the price differs')
    await row(page.getByRole('table', { name: 'History' }), 'olga')
      .first()
      .waitFor()
    t.notMatch(await page.getByLabel(service.configPath).inputValue(), 'test"', 'no secret is shown')
  })
})

async function newestCall(service: Awaited<ReturnType<typeof borrowService>>, key: string) {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${service.baseUrl}/v1/logs?limit=1`, { headers })
  const { data } = (await response.json()) as { data: { attempts_count: number }[] }
  return data[0] ?? { attempts_count: 0 }
}
