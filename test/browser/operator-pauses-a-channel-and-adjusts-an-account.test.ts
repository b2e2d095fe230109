/** An operator sees a channel fail, pauses and resumes it, and gives an account its credits back with a reason. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

/** A second channel, whose provider fails every call. */
const CONFIG = STORY_CONFIG.replace(
  'models:\n',
  'models:\n  - { id: fragile, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000" } }\n',
).replace(
  'channels:\n',
  [
    'channels:',
    '  - id: fragile',
    '    protocol: chat-completions',
    '    base_url: ${TEST_SIMULATOR_URL}/v1',
    '    api_key: test',
    '    models: { fragile: "sim-fragile@fault=status:500" }',
    '',
  ].join('\n'),
)
const FAILURES = 20

t.test('operator', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { database } = service

  await withEachHand(t, 'operator', async (t, { hand, page, look }) => {
    const { account } = await database.accounts.create({ name: `Customer ${hand.name}`, credit: 100n })
    await signIn(service, page, { name: 'Olga', role: 'operator' })

    await hand.press(link(page, 'Overview'))
    await heading(page, 'Overview').waitFor()
    await page.getByRole('status').getByText('Live').waitFor()
    await row(page, 'settler+tasks').getByText('Running').waitFor()
    await page.getByRole('figure').first().waitFor()
    await look('overview')

    await hand.press(link(page, 'Channels'))
    await heading(page, 'Channels').waitFor()
    const channel = row(page, 'simulated')
    await channel.getByText('Active', { exact: true }).waitFor()
    const { key } = await service.newKey('1000000')
    const call = { model: 'fragile', messages: [{ role: 'user', content: 'Hello!' }] }
    for (let made = 0; made < FAILURES; made += 1) await service.chat(key, call)
    const fragile = row(page, 'fragile')
    await fragile.getByText(/^Open/).waitFor()
    await look('channels')
    await hand.press(button(fragile, 'Drain'))
    const confirm = page.getByRole('dialog', { name: 'Drain fragile' })
    await hand.write(confirm.getByRole('textbox'), 'fragile')
    await hand.press(button(confirm, 'Drain'))
    await fragile.getByText('Drained', { exact: true }).waitFor()
    await hand.press(button(fragile, 'Resume'))
    await fragile.getByText('Active', { exact: true }).waitFor()
    await hand.press(button(channel, 'Pause'))
    const pause = page.getByRole('dialog', { name: 'Pause simulated' })
    await pause.getByText('lose their last channel').waitFor()
    await hand.write(pause.getByRole('textbox'), 'simulated')
    await hand.press(button(pause, 'Pause'))
    await channel.getByText('Paused', { exact: true }).waitFor()
    await hand.press(button(channel, 'Resume'))
    await channel.getByText('Active', { exact: true }).waitFor()

    await hand.press(link(page, 'Accounts'))
    await hand.write(page.getByLabel('Id or name'), account.id)
    await hand.press(button(page, 'Search'))
    await hand.press(page.getByRole('link', { name: account.name }))
    const drawer = page.getByRole('dialog', { name: 'Account' })
    await look('account')
    await hand.write(drawer.getByLabel('Credits', { exact: true }), '2.5')
    await hand.write(drawer.getByLabel('Reason'), 'the answer was empty')
    await hand.press(button(drawer, 'Book the adjustment'))
    const booking = page.getByRole('dialog', { name: /^Adjust the balance of/ })
    await booking.getByText('The balance goes from 0.000001 to 2.500001 credits.').waitFor()
    await look('account-adjustment')
    await hand.press(button(booking, 'Book it'))
    await drawer.getByText('the answer was empty').waitFor()
    const { wallet } = await database.accounts.show(account.id)
    t.equal(wallet.balance, 250_000_100n)
    t.equal(await drawer.getByLabel('Credits', { exact: true }).inputValue(), '', 'the form is empty again')
    const [act] = await database.auditRecord.list({ accountId: account.id, limit: 1 })
    t.match(act, { action: 'wallet.adjustment', actor: /^user:usr_/ })
    await hand.write(drawer.getByLabel('Credits', { exact: true }), '-2000000')
    await hand.write(drawer.getByLabel('Reason'), 'a large one')
    await hand.press(button(drawer, 'Book the adjustment'))
    await booking.getByText('Calls are refused while the balance is below zero.').waitFor()
    t.ok(await button(booking, 'Book it').isDisabled(), 'the amount is typed first')
    await hand.press(button(booking, 'Cancel'))
    await hand.press(button(drawer, 'View as its owner'))
    await page.getByText('You see Customer').waitFor()
    await heading(page, 'Home').waitFor()
    t.equal(await link(page, 'Channels').count(), 0, 'its owner sees nothing of the installation')
    await hand.press(link(page, 'Keys'))
    await heading(page, 'Keys').waitFor()
    t.equal(await button(page, 'Create a key').count(), 0, 'a view changes nothing')
    await look('account-viewed')
    t.match(await database.auditRecord.list({ accountId: account.id, limit: 1 }), [
      { action: 'account.view' },
    ])
    await hand.press(button(page, 'End the view'))
    await hand.press(button(drawer, 'Close'))
    await hand.press(button(page.getByRole('dialog', { name: 'Discard what you typed?' }), 'Discard'))

    await hand.press(link(page, 'Catalog'))
    const yaml = page.getByRole('textbox')
    await yaml.waitFor()
    await yaml.fill((await yaml.inputValue()).replace('input: "1000000"', 'input: "1500000"'))
    await hand.press(button(page, 'Check'))
    await page.getByText('Changed', { exact: true }).first().waitFor()
    await look('catalog')

    await hand.press(link(page, 'Integrity'))
    await hand.press(button(page, 'Verify now'))
    await row(page, 'Verify')
      .first()
      .getByText(/No difference|Differences/)
      .waitFor()
    await look('integrity')

    await hand.press(link(page, 'Audit'))
    await heading(page, 'Audit').waitFor()
    await look('audit')
    const downloading = page.waitForEvent('download')
    await hand.press(button(page, 'CSV'))
    t.match(readFileSync(await (await downloading).path(), 'utf8'), /^id,created_at,actor.*\r\n\d+,/)
  })
})
