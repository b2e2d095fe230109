/**
 * The package of the reference page. Its one script has everything in it, so it is no dependency: that would bring the two
 * hundred packages that the script was built of.
 */
export const REFERENCE_PACKAGE = {
  name: '@scalar/api-reference',
  version: '1.46.4',
  integrity:
    'sha512-EpCcOG15Ry8DKNs/f5AdRA97s1B5kGPekzANpnK0j1IpyU4Sb/mfdyfB00WC+vUo7hfc4BFRSkkiPa5SSM7fng==',
} as const
