/** A person comes by an OpenID Connect provider: invited at first, and known afterwards. */
import t from 'tap'
import { hashToken } from '../../src/core/keys/bearer-token.ts'
import { startProvider } from '../pipelines/management/identity-provider.ts'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, STORY_CONFIG, withEachHand } from './support.ts'

t.test('a provider', async (t) => {
  const person = (name: string) => ({ email: `${name}@corp.example`, email_verified: true, name: 'Linus' })
  const provider = await startProvider(t, { linus: person('linus'), torvald: person('torvald') })
  const signIn = JSON.stringify({ oidc: [provider.config] })
  const service = await borrowService(t, `sign_in: ${signIn}\n${STORY_CONFIG}`)
  provider.redirectTo(`${service.baseUrl}/console/sign-in/oidc/corp`)
  const invitation = { accountId: null, role: null, installationRole: null }
  await withEachHand(t, 'provider', async (t, { hand, page }) => {
    const name = hand === mouse ? 'linus' : 'torvald'
    const email = `${name}@corp.example`
    const token = `another-invitation-for-${name}-that-nobody-guesses`
    provider.become(name)
    await service.database.invitations.create({ ...invitation, tokenHash: hashToken(token), email })
    await page.goto(`${service.baseUrl}/console/sign-in`)
    await hand.press(button(page, 'Continue with Corp'))
    await page.getByRole('alert').getByText('Sign-up is by invitation').waitFor()
    t.notMatch(page.url(), 'code=', 'the code is in no history')

    await page.goto(`${service.baseUrl}/console/sign-up#invitation=${token}`)
    await hand.press(button(page, 'Continue with Corp'))
    await heading(page, 'Home').waitFor()
    await hand.press(link(page, 'Profile & security'))
    await page.getByText('Connected').waitFor()
    t.equal(await page.getByLabel('Email').inputValue(), email)
    await hand.press(button(page, 'Disconnect'))
    const question = page.getByRole('dialog', { name: 'Disconnect Corp' })
    await hand.press(button(question, 'Disconnect'))
    await page.getByText('This is your last way to sign in').waitFor()
    await hand.press(button(question, 'Cancel'))

    await hand.press(button(page, 'Sign out'))
    await heading(page, 'Sign in to Tollgate').waitFor()
    const { account } = await service.database.accounts.create({
      name: `Acme of ${name}`,
      kind: 'organization',
      credit: 0n,
    })
    const joining = `an-invitation-of-acme-for-${name}-that-nobody-guesses`
    await service.database.invitations.create({
      tokenHash: hashToken(joining),
      email,
      accountId: account.id,
      role: 'member',
      installationRole: null,
    })
    await page.goto(`${service.baseUrl}/console/sign-up#invitation=${joining}`)
    await hand.press(button(page, 'Continue with Corp'))
    await hand.press(button(page, 'Accept as Linus'))
    await heading(page, 'Home').waitFor()
    t.match(await service.database.organizations.listMembers(account.id), [{ name: 'Linus', role: 'member' }])
  })
})
