/** A form says beside each field what to correct, in plain English, and no longer once the field changes. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, link, STORY_CONFIG, signIn } from './support.ts'

t.test('forms', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withPage(t, 'corrections', async (page) => {
    await signIn(service, page, { name: 'Cora', role: 'operator' })
    await link(page, 'Keys').click()
    await button(page, 'Create a key').click()
    const dialog = page.getByRole('dialog', { name: 'Create a key' })
    const name = dialog.getByLabel('Name')
    const perMinute = dialog.getByLabel('Requests per minute')
    await dialog.getByLabel('Concurrent calls').fill('0')
    await perMinute.fill('many')
    await button(dialog, 'Create').click()
    await dialog.getByText('Fill in this field.').waitFor()
    await dialog.getByText('Enter 1 or more.').waitFor()
    await dialog.getByText('Enter a number, such as 1,000.').waitFor()
    t.equal(await page.evaluate('document.activeElement.name'), 'name', 'the first problem has the focus')
    await inspectPage(t, page, 'form-corrections')
    await name.fill('web')
    await dialog.getByText('Fill in this field.').waitFor({ state: 'detached' })
    await perMinute.fill('1,000')
    await dialog.getByLabel('Concurrent calls').fill('2')
    await dialog.getByLabel('Allowed addresses').fill('10.1.2.3/8')
    await button(dialog, 'Create').click()
    await dialog.getByText('write 10.0.0.0/8 for the whole network').waitFor()
    t.equal(await dialog.getByLabel('Allowed addresses').getAttribute('aria-invalid'), 'true')
    await dialog.getByLabel('Allowed addresses').fill('10.0.0.0/8')
    await dialog.getByText('write 10.0.0.0/8').waitFor({ state: 'detached' })
    await dialog.getByLabel('Budget in credits').fill('2,500')
    await button(dialog, 'Create').click()
    await button(page.getByRole('dialog', { name: 'web' }), 'Done').click()
    await page.getByRole('link', { name: 'web', exact: true }).click()
    const drawer = page.getByRole('dialog', { name: 'web' })
    await drawer.getByText('2,500.00').waitFor()
    t.equal(await drawer.getByLabel('Requests per minute').inputValue(), '1000')

    await page.goto(`${service.baseUrl}/console/users`)
    await button(page, 'Invite a person').click()
    const invite = page.getByRole('dialog', { name: 'Invite a person' })
    await invite.getByLabel('Email').fill('nobody')
    await button(invite, 'Create the link').click()
    await invite.getByText('Enter an email address, such as ada@example.com.').waitFor()
  })
})
