// Long arrays of numbers, as crates/page/src/packed.rs writes them: base64 of a typed array in little-endian order, deflated.

/** One array in a page's data. */
export interface Packed {
  readonly packed: keyof Arrays;
  readonly length: number;
  /** Base64 of zlib's format. */
  readonly data: string;
}

export interface Arrays {
  readonly u8: Uint8Array<ArrayBuffer>;
  readonly u16: Uint16Array<ArrayBuffer>;
  readonly u32: Uint32Array<ArrayBuffer>;
  readonly i32: Int32Array<ArrayBuffer>;
  readonly f32: Float32Array<ArrayBuffer>;
  readonly f64: Float64Array<ArrayBuffer>;
}

const KINDS: { readonly [K in keyof Arrays]: new (bytes: ArrayBuffer) => Arrays[K] } = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  f64: Float64Array,
};

interface FromBase64 {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as FromBase64).fromBase64;
  if (native !== undefined) return native.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < characters.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

/** The array of `kind`; fails where the page holds another or less than it says. */
export async function unpack<K extends keyof Arrays>(kind: K, packed: Packed): Promise<Arrays[K]> {
  if (packed.packed !== kind) throw new Error(`an array of ${packed.packed} stands where one of ${kind} is expected`);
  const inflated = new Blob([bytesOf(packed.data)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const array = new KINDS[kind](await new Response(inflated).arrayBuffer());
  if (array.length !== packed.length) throw new Error(`an array has ${array.length} numbers, not ${packed.length}`);
  return array;
}
