/** An owner selects several keys: switches them off, exports them, and revokes some. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const NAMES = ['shop', 'blog', 'forum', 'intranet']

t.test('several keys', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)

  await withEachHand(t, 'several keys', async (t, { hand, page, look }) => {
    const { accountId } = await signIn(service, page, { name: 'Rosa' })
    const made = new Map<string, string>()
    for (const name of NAMES) made.set(name, (await service.database.keys.create({ accountId, name })).key.id)
    const show = (name: string) => service.database.keys.show(made.get(name)!)
    await hand.press(link(page, 'Keys'))
    await heading(page, 'Keys').waitFor()
    const select = (name: string) => page.getByRole('checkbox', { name, exact: true })
    const bar = page.getByRole('region', { name: 'Selected rows' })

    await hand.press(select('Select shop'))
    await hand.press(select('Select forum'))
    await bar.getByText('2 selected').waitFor()
    await look('keys-selected')
    await hand.press(button(bar, 'Switch off'))
    const off = page.getByRole('dialog', { name: 'Switch off 2 keys' })
    await off.getByText(/shop/).waitFor()
    await off.getByText(/forum/).waitFor()
    await hand.press(button(off, 'Switch off'))
    await page.getByText('Keys switched off').waitFor()
    await bar.waitFor({ state: 'detached' })
    await row(page, 'shop').getByText('Off', { exact: true }).waitFor()
    t.same(await Promise.all(NAMES.map(async (name) => (await show(name)).enabled)), [
      false,
      true,
      false,
      true,
    ])

    // Some keys are on and some are off: each button applies to the keys that it can change.
    await hand.press(select('Select all rows'))
    await bar.getByText('4 selected').waitFor()
    const downloading = page.waitForEvent('download')
    await hand.press(button(bar, 'CSV'))
    const lines = readFileSync(await (await downloading).path(), 'utf8')
      .trim()
      .split('\r\n')
    t.match(lines[0], /^id,name,key_prefix,enabled,/)
    t.equal(lines.length, 1 + NAMES.length)
    await hand.press(button(bar, 'Switch on'))
    await page.getByText('Keys switched on').waitFor()
    await row(page, 'shop').getByText('Active', { exact: true }).waitFor()

    await hand.press(select('Select all rows'))
    await hand.press(select('Select intranet'))
    await bar.getByText('3 selected').waitFor()
    await hand.press(button(bar, 'Revoke'))
    const revoke = page.getByRole('dialog', { name: 'Revoke 3 keys' })
    await revoke.getByRole('textbox').waitFor()
    t.ok(await button(revoke, 'Revoke').isDisabled())
    await look('keys-revoked')
    await hand.write(revoke.getByRole('textbox'), '3 keys')
    await hand.press(button(revoke, 'Revoke'))
    await page.getByText('Keys revoked').waitFor()
    await row(page, 'blog').getByText('Revoked', { exact: true }).waitFor()
    for (const name of NAMES)
      t.equal((await show(name)).revokedAt === null, name === 'intranet', `only the selected: ${name}`)
  })
})
